"""llama.cpp's own HTTP server with the embedded language model, for tests: prints its address and waits."""

from __future__ import annotations

import sys
import time

import xllamacpp

from overtone.embedded import language


def main(key: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(language.path())
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.model_alias = {"smollm2"}
    params.n_ctx, params.n_parallel, params.verbosity = 512, 1, -1
    engine = xllamacpp.Server(params)
    print(engine.listening_address, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
