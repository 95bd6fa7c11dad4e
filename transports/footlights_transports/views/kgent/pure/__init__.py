"""A chat over the core, as K-gent has it: what goes in, what comes out, what stays, and what it may take.

Pure: no trio. Only whole turns stay. Chunks and correlation ids are gone when the session is.
"""
