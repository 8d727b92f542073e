"""One measurement of llama.cpp in a process of its own, printed as one JSON line.

Calls the C interface through llama-cpp-python, with the settings of its own benchmark program:
logical batch 2048, physical batch 512, memory-mapped weights, F16 memory.
"""

import ctypes
import json
import sys
import time

import llama_cpp
import numpy as np

from tests.bench.ours import peak_bytes


def measure(path: str, n_prompt: int, n_generate: int, n_threads: int, depth: int) -> dict:
    """Return tokens per second of prompt and generation, seconds to load, peak bytes."""
    started = time.perf_counter()
    silence()
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        path.encode(), llama_cpp.llama_model_default_params()
    )
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = max(1024, depth + max(n_prompt, n_generate))
    params.n_batch, params.n_ubatch = 2048, 512
    params.n_threads = params.n_threads_batch = n_threads
    context = llama_cpp.llama_init_from_model(model, params)
    n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    tokens = np.random.default_rng(0).integers(0, n_vocab, params.n_ctx).astype(np.int32)
    decode(context, tokens[:n_prompt])
    clear(context)
    decode(context, tokens[:1])
    loaded = time.perf_counter() - started
    return {
        "prompt": rate(context, tokens, [n_prompt], depth),
        "generate": rate(context, tokens, [1] * n_generate, depth),
        "load_s": loaded,
        "peak_bytes": peak_bytes(),
    }


def rate(context: object, tokens: np.ndarray, steps: list[int], depth: int) -> float:
    """Tokens per second of decoding `steps` (token counts) behind `depth` tokens."""
    clear(context)
    if depth:
        for start in range(0, depth, 2048):
            decode(context, tokens[start : min(depth, start + 2048)])
    position = depth
    started = time.perf_counter()
    for n in steps:
        decode(context, tokens[position : position + n])
        position += n
    return sum(steps) / (time.perf_counter() - started)


def decode(context: object, tokens: np.ndarray) -> None:
    """Run one batch and wait for it."""
    tokens = np.ascontiguousarray(tokens, np.int32)
    pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
    batch = llama_cpp.llama_batch_get_one(pointer, len(tokens))
    if llama_cpp.llama_decode(context, batch) != 0:
        raise RuntimeError("llama.cpp could not decode")
    llama_cpp.llama_synchronize(context)


def clear(context: object) -> None:
    """Forget everything."""
    llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)


@llama_cpp.llama_log_callback
def nothing(level: int, text: bytes, user: object) -> None:
    """A log that says nothing."""


def silence() -> None:
    """Keep its log out of the JSON line."""
    llama_cpp.llama_log_set(nothing, ctypes.c_void_p(0))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
