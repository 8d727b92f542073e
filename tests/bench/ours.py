"""One measurement of Inglenook in a process of its own, printed as one JSON line."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def measure(path: str, n_prompt: int, n_generate: int, n_threads: int, depth: int) -> dict:
    """Return tokens per second of prompt and generation, seconds to load, peak bytes."""
    started = time.perf_counter()
    import engine

    model = engine.Model.load(path)
    n_ctx = max(1024, depth + max(n_prompt, n_generate))
    context = model.context(n_ctx=n_ctx, n_threads=n_threads, n_threads_batch=n_threads)
    with context:
        tokens = np.random.default_rng(0).integers(0, model.vocab.n_tokens, n_ctx).tolist()
        context.decode(tokens[:n_prompt])
        context.memory.clear()
        context.decode(tokens[:1])
        loaded = time.perf_counter() - started
        return {
            "prompt": prompt_rate(context, tokens, n_prompt, depth),
            "generate": generate_rate(context, tokens, n_generate, depth),
            "load_s": loaded,
            "peak_bytes": peak_bytes(),
        }


def prompt_rate(context: object, tokens: list[int], n: int, depth: int) -> float:
    """Tokens per second of reading `n` tokens behind `depth` others."""
    fill(context, tokens, depth)
    started = time.perf_counter()
    context.decode(tokens[depth : depth + n])
    return n / (time.perf_counter() - started)


def generate_rate(context: object, tokens: list[int], n: int, depth: int) -> float:
    """Tokens per second of `n` single steps behind `depth` others."""
    fill(context, tokens, depth)
    started = time.perf_counter()
    for token in tokens[depth : depth + n]:
        context.decode([token])
    return n / (time.perf_counter() - started)


def fill(context: object, tokens: list[int], depth: int) -> None:
    """Start again with `depth` tokens in memory."""
    context.memory.clear()
    if depth:
        context.decode(tokens[:depth])


def peak_bytes() -> int:
    """Peak resident bytes of this process (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
