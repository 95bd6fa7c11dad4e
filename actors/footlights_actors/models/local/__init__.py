"""The local model: weights, the worker process that runs llama.cpp, and the driver that talks to it."""
