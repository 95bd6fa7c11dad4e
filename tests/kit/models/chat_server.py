"""A real OpenAI-compatible server, in a process of its own: weights are its argument, a key its first line of input.

It prints the address that it listens on, and runs until its input ends.
"""

from __future__ import annotations

import sys

import xllamacpp  # type: ignore[import-untyped]  # it has no types


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.api_keys = [sys.stdin.readline().strip()]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = 2_048
    params.n_batch = params.n_ubatch = 32
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.endpoint_slots = True
    params.ui = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
