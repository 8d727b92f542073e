"""One measurement of llama.cpp in a process of its own, printed as one JSON line.

Calls the C interface through llama-cpp-python, with the settings of its own benchmark program:
logical batch 2048, physical batch 512, memory-mapped weights, F16 memory unless asked otherwise.
"""

import ctypes
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from tests.bench.ours import peak_bytes, rate, seconds

KV_TYPES = {"f16": llama_cpp.GGML_TYPE_F16, "q8_0": llama_cpp.GGML_TYPE_Q8_0}
FLASH = {"f16": -1, "q8_0": 1}  # its own choice; quantized V works with flash attention only


def speed(path: str, n_prompt: int, n_generate: int, n_threads: int) -> dict[str, float]:
    """Return tokens per second of prompt and generation, seconds to load, peak bytes."""
    started = time.perf_counter()
    context, tokens = open_context(path, n_threads, n_ctx=max(1024, n_prompt, n_generate))
    decode(context, tokens[:n_prompt])
    forget(context)
    decode(context, tokens[:1])
    loaded = time.perf_counter() - started
    forget(context)
    prompt = rate(n_prompt, lambda: decode(context, tokens[:n_prompt]))
    forget(context)
    generate = rate(n_generate, lambda: step(context, tokens[:n_generate]))
    peak = peak_bytes()
    return {"prompt": prompt, "generate": generate, "load_s": loaded, "peak_bytes": peak}


def depth(
    path: str, n_past: int, kv_type: str, n_prompt: int, n_generate: int, n_threads: int
) -> dict[str, float]:
    """Return tokens per second of prompt and generation behind `n_past` tokens in memory."""
    kv = {"type_k": KV_TYPES[kv_type], "type_v": KV_TYPES[kv_type]}
    n_ctx = n_past + max(n_prompt, n_generate)
    options = kv | {"n_ctx": n_ctx, "flash_attn_type": FLASH[kv_type]}
    context, tokens = open_context(path, n_threads, **options)
    decode(context, tokens[:n_past])
    step(context, tokens[n_past : n_past + 1])
    forget(context, n_past)
    later = tokens[n_past:]
    found = {"generate": rate(n_generate, lambda: step(context, later[:n_generate]))}
    forget(context, n_past)
    return found | {"prompt": rate(n_prompt, lambda: decode(context, later[:n_prompt]))}


def streams(
    path: str, n_streams: int, n_prompt: int, n_generate: int, n_threads: int
) -> dict[str, float]:
    """Return tokens per second of one sequence alone, and of `n_streams` in each step."""
    n_ctx = n_streams * max(256, n_prompt + 2 * n_generate + 2)
    context, tokens = open_context(path, n_threads, n_ctx=n_ctx, n_seq_max=n_streams)
    batch = llama_cpp.llama_batch_init(512, 0, 1)
    ids = range(n_streams)
    for seq_id in ids:
        rows = [(token, i, seq_id) for i, token in enumerate(tokens[:n_prompt].tolist())]
        decode_rows(context, batch, rows)
    decode_rows(context, batch, [(int(tokens[i]), n_prompt, i) for i in ids])

    def alone() -> None:
        for i in range(n_generate):
            decode_rows(context, batch, [(int(tokens[i]), n_prompt + 1 + i, 0)])

    def together() -> None:
        for i in range(n_generate):
            at = [n_prompt + 1 + i + (n_generate if seq_id == 0 else 0) for seq_id in ids]
            decode_rows(context, batch, [(int(tokens[i + j]), at[j], j) for j in ids])

    return {"one": rate(n_generate, alone), "together": rate(n_streams * n_generate, together)}


def saved(path: str, n_tokens: int, n_threads: int) -> dict[str, float]:
    """Return seconds to read a prompt, to save what is remembered of it, and to load that."""
    context, tokens = open_context(path, n_threads, n_ctx=n_tokens + 256)
    decode(context, tokens[:512])
    forget(context)
    found = {"read_s": seconds(lambda: decode(context, tokens[:n_tokens]))}
    room = (ctypes.c_int32 * n_tokens)(*tokens[:n_tokens].tolist())
    n_read = ctypes.c_size_t()
    with tempfile.TemporaryDirectory() as place:
        name = (file := Path(place) / "sequence").as_posix().encode()
        found["save_s"] = seconds(
            lambda: llama_cpp.llama_state_seq_save_file(context, name, 0, room, n_tokens)
        )
        forget(context)
        found["load_s"] = seconds(
            lambda: llama_cpp.llama_state_seq_load_file(
                context, name, 0, room, n_tokens, ctypes.byref(n_read)
            )
        )
        found["n_bytes"] = file.stat().st_size
    if n_read.value != n_tokens:
        raise RuntimeError("llama.cpp did not load what it saved")
    return found


def open_context(path: str, n_threads: int, **options: Any) -> tuple[Any, np.ndarray]:
    """Return a context of a model, and as many random tokens as it can hold."""
    silence()
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(
        path.encode(), llama_cpp.llama_model_default_params()
    )
    params = llama_cpp.llama_context_default_params()
    params.n_batch, params.n_ubatch = 2048, 512
    params.n_threads = params.n_threads_batch = n_threads
    for name, value in options.items():
        setattr(params, name, value)
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        raise RuntimeError("llama.cpp could not make this context")
    n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    tokens = np.random.default_rng(0).integers(0, n_vocab, params.n_ctx)
    return context, tokens.astype(np.int32)


def decode(context: Any, tokens: np.ndarray) -> None:
    """Run tokens of sequence 0 in logical batches, and wait for them."""
    for start in range(0, len(tokens), 2048):
        piece = np.ascontiguousarray(tokens[start : start + 2048], np.int32)
        pointer = piece.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        check(llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(pointer, len(piece))))
        llama_cpp.llama_synchronize(context)


def step(context: Any, tokens: np.ndarray) -> None:
    """Decode tokens one at a time."""
    for i in range(len(tokens)):
        decode(context, tokens[i : i + 1])


def decode_rows(context: Any, batch: Any, rows: list[tuple[int, int, int]]) -> None:
    """Run rows of (token, position, sequence), the last of each sequence with its logits."""
    batch.n_tokens = len(rows)
    last = {seq_id: i for i, (_, _, seq_id) in enumerate(rows)}
    for i, (token, position, seq_id) in enumerate(rows):
        batch.token[i], batch.pos[i] = token, position
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, seq_id
        batch.logits[i] = last[seq_id] == i
    check(llama_cpp.llama_decode(context, batch))
    llama_cpp.llama_synchronize(context)


def check(status: int) -> None:
    """Raise if a decode failed."""
    if status != 0:
        raise RuntimeError("llama.cpp could not decode")


def forget(context: Any, start: int = 0) -> None:
    """Forget sequence 0 from a position on."""
    llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(context), 0, start, -1)


@llama_cpp.llama_log_callback
def nothing(level: int, text: bytes, user: object) -> None:
    """A log that says nothing."""


def silence() -> None:
    """Keep its log out of the JSON line."""
    llama_cpp.llama_log_set(nothing, ctypes.c_void_p(0))


JOBS = {"speed": speed, "depth": depth, "streams": streams, "saved": saved}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](sys.argv[2], **json.loads(sys.argv[3]))))
