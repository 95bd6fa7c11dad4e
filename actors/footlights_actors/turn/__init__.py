"""One turn put together from its actors: the performance, the choice of a model, tool calls, the standard cast."""
