"""Local model: weights, the worker process that runs llama.cpp, and its driver.

Prompts and answers stay on the machine. The network is used only by `fetch.py`, which downloads weights on request.
"""
