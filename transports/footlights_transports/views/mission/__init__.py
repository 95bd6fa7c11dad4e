"""Callouts (the Dottie protocol): mission events as text and voice, and the boards that show them.

A callout follows what a turn did. Nothing here delays or changes a turn.
"""
