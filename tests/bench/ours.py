"""One measurement of Inglenook in a process of its own, printed as one JSON line."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def speed(path: str, n_prompt: int, n_generate: int, n_threads: int) -> dict[str, float]:
    """Return tokens per second of prompt and generation, seconds to load, peak bytes."""
    started = time.perf_counter()
    context, tokens = open_context(path, n_threads, n_ctx=max(1024, n_prompt, n_generate))
    context.decode(tokens[:n_prompt])
    context.memory.clear()
    context.decode(tokens[:1])
    loaded = time.perf_counter() - started
    context.memory.clear()
    prompt = rate(n_prompt, lambda: context.decode(tokens[:n_prompt]))
    context.memory.clear()
    generate = rate(n_generate, lambda: step(context, tokens[:n_generate]))
    found = {"prompt": prompt, "generate": generate, "load_s": loaded}
    return found | {"peak_bytes": peak_bytes()}


def depth(
    path: str, n_past: int, kv_type: str, n_prompt: int, n_generate: int, n_threads: int
) -> dict[str, float]:
    """Return tokens per second of prompt and generation behind `n_past` tokens in memory."""
    n_ctx = n_past + max(n_prompt, n_generate)
    kv = {"type_k": kv_type, "type_v": kv_type}
    context, tokens = open_context(path, n_threads, n_ctx=n_ctx, **kv)
    context.decode(tokens[:n_past])
    step(context, tokens[n_past : n_past + 1])
    context.memory.seq_rm(0, n_past, -1)
    later = tokens[n_past:]
    generate = rate(n_generate, lambda: step(context, later[:n_generate]))
    context.memory.seq_rm(0, n_past, -1)
    prompt = rate(n_prompt, lambda: context.decode(later[:n_prompt]))
    return {"prompt": prompt, "generate": generate}


def streams(
    path: str, n_streams: int, n_prompt: int, n_generate: int, n_threads: int
) -> dict[str, float]:
    """Return tokens per second of one sequence alone, and of `n_streams` in each step."""
    n_ctx = n_streams * max(256, n_prompt + 2 * n_generate + 2)
    context, tokens = open_context(path, n_threads, n_ctx=n_ctx, n_seq_max=n_streams)
    ids = list(range(n_streams))
    for seq_id in ids:
        context.decode(tokens[:n_prompt], seq_ids=seq_id)
    context.decode(tokens[:n_streams], seq_ids=ids, want="all")
    alone = rate(n_generate, lambda: step(context, tokens[:n_generate]))

    def together() -> None:
        for i in range(n_generate):
            context.decode(tokens[i : i + n_streams], seq_ids=ids, want="all")

    return {"one": alone, "together": rate(n_streams * n_generate, together)}


def saved(path: str, n_tokens: int, n_threads: int) -> dict[str, float]:
    """Return seconds to read a prompt, to save what is remembered of it, and to load that."""
    context, tokens = open_context(path, n_threads, n_ctx=n_tokens + 256)
    context.decode(tokens[:512])
    context.memory.clear()
    read_s = seconds(lambda: context.decode(tokens[:n_tokens]))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "sequence"
        save_s = seconds(lambda: context.save_sequence(0, file))
        context.memory.clear()
        load_s = seconds(lambda: context.restore_sequence(0, file))
        n_bytes = file.stat().st_size
    context.decode(tokens[:1])
    return {"read_s": read_s, "save_s": save_s, "load_s": load_s, "n_bytes": n_bytes}


def open_context(path: str, n_threads: int, **options: Any) -> tuple[Any, list[int]]:
    """Return a context of a model and as many random tokens as it can hold."""
    import engine

    model = engine.Model.load(path)
    context = model.context(n_threads=n_threads, n_threads_batch=n_threads, **options)
    n_vocab = model.vocab.n_tokens
    return context, np.random.default_rng(0).integers(0, n_vocab, context.n_ctx).tolist()


def step(context: Any, tokens: list[int]) -> None:
    """Decode tokens one at a time."""
    for token in tokens:
        context.decode([token])


def rate(n_tokens: int, work: Callable[[], Any]) -> float:
    """Tokens per second of a piece of work over `n_tokens`."""
    return n_tokens / seconds(work)


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of a piece of work."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def peak_bytes() -> int:
    """Peak resident bytes of this process (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


JOBS = {"speed": speed, "depth": depth, "streams": streams, "saved": saved}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](sys.argv[2], **json.loads(sys.argv[3]))))
