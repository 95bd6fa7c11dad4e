"""Local model: weights, the worker process that runs llama.cpp, and its driver. No remote server is involved."""
