"""bench: tokens per second of reading a prompt and of generating, median and spread."""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.options import add_model
from engine.cli.synthetic import write_model
from engine.cli.terminal import ProgressLine
from engine.errors import RequestError
from engine.runtime import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser, required=False)
    parser.add_argument("--synthetic", metavar="ARCH:SIZE:QUANT", help="random weights instead")
    parser.add_argument("--write", metavar="F", help="only write the synthetic model to this file")
    parser.add_argument("-p", "--n-prompt", type=int, default=512, metavar="N")
    parser.add_argument("-n", "--n-gen", type=int, default=64, metavar="N")
    parser.add_argument("-r", "--repetitions", type=int, default=3, metavar="N")
    parser.add_argument("-t", "--threads", type=int, metavar="N")
    parser.add_argument(
        "-b", "--batch", type=int, default=2048, metavar="N", help="tokens per batch"
    )
    parser.add_argument("--ubatch", type=int, default=512, metavar="N", help="tokens at once")
    parser.add_argument("-d", "--depth", type=int, default=0, help="tokens in memory beforehand")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace) -> int:
    """Measure a model file, or a synthetic model written to a temporary one."""
    if (options.model is None) == (options.synthetic is None):
        raise RequestError("Give either --model F or --synthetic ARCH:SIZE:QUANT.")
    if options.write:
        write_model(options.synthetic or "", Path(options.write))
        return 0
    if options.synthetic is None:
        return _report(_measure(Path(options.model), options), options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.gguf"
        write_model(options.synthetic, path)
        return _report(_measure(path, options), options)


def _measure(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the model's name and the rates of every repetition, the first one not counted."""
    progress = ProgressLine()
    model = Model.load(str(path), progress=progress)
    progress.clear()
    n_new = max(options.n_prompt, options.n_gen, 1)
    context = model.context(
        n_ctx=options.depth + n_new,
        n_batch=options.batch,
        n_ubatch=min(options.ubatch, options.batch),
        n_threads=options.threads,
        n_threads_batch=options.threads,
    )
    tokens = np.random.default_rng(0).integers(0, model.info.n_vocab, options.depth + n_new)
    tests = {"prompt": options.n_prompt, "generate": options.n_gen}
    rates: dict[str, list[float]] = {name: [] for name, n_tokens in tests.items() if n_tokens > 0}
    with context:
        for i in range(options.repetitions + 1):
            for name, found in rates.items():
                rate = _rate(context, tokens.tolist(), options.depth, name, tests[name])
                if i > 0:
                    found.append(rate)
    return {
        "model": options.synthetic or path.name,
        "n_params": model.info.n_params,
        "size_bytes": model.info.size_bytes,
        "depth": options.depth,
        "tests": {name: _summary(tests[name], found) for name, found in rates.items()},
    }


def _rate(context: Any, tokens: Sequence[int], depth: int, name: str, n_tokens: int) -> float:
    """Return tokens per second of reading `n_tokens` at once, or one by one."""
    context.memory.clear()
    if depth:
        context.decode(tokens[:depth])
    fresh = tokens[depth : depth + n_tokens]
    started = time.perf_counter()
    if name == "prompt":
        context.decode(fresh)
    else:
        for token in fresh:
            context.decode([token])
    return n_tokens / (time.perf_counter() - started)


def _summary(n_tokens: int, rates: Sequence[float]) -> dict[str, Any]:
    median = statistics.median(rates)
    spread = (max(rates) - min(rates)) / median
    return {"n_tokens": n_tokens, "tps": median, "spread": spread, "all": list(rates)}


def _report(found: dict[str, Any], options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps(found))
        return 0
    size = f"{found['n_params'] / 1e6:,.0f} M weights, {found['size_bytes'] / 1e6:,.0f} MB"
    print(f"{found['model']} ({size}), depth {found['depth']}")
    for name, test in found["tests"].items():
        rates = f"{test['tps']:10.2f} tokens/s  ± {test['spread'] / 2:.1%}"
        print(f"  {name:9} {test['n_tokens']:5} tokens {rates}")
    return 0
