"""Measures what the engine thread does between two decodes while four slots generate.

    python -m tests.bench.scheduler MODEL '{"n_slots": 4, "n_generate": 128, "n_threads": 2}'

Prints one JSON line: microseconds of a step, of its decode, and of choosing the tokens.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from engine import CompletionRequest, EngineClient
from engine.client.loading import N_FORKS, load_model
from engine.params import ContextParams

Span = tuple[float, float, int]  # start, end, tokens


def measure(path: str, n_slots: int, n_generate: int, n_threads: int) -> dict[str, float]:
    """Return microseconds of a whole step, of its decode and of its sampling, and the
    percent of it outside the decode, with and without sampling (medians over steps)."""
    decodes: list[Span] = []
    sampled: list[Span] = []
    params = ContextParams(
        n_ctx=n_slots * (n_generate + 256),
        n_seq_max=n_slots + N_FORKS,
        n_threads=n_threads,
        n_threads_batch=n_threads,
    )

    def load(report: Callable[[str, float], None]) -> Any:
        loaded = load_model(path, params, report)
        loaded.context.decode = timed(loaded.context.decode, decodes)
        make_sampler = loaded.make_sampler

        def make_timed(*arguments: Any) -> Any:
            sampler = make_sampler(*arguments)
            sampler.apply = timed(sampler.apply, sampled)
            sampler.accept = timed(sampler.accept, sampled)
            return sampler

        loaded.make_sampler = make_timed
        return loaded

    with EngineClient.over(load, n_slots) as client:
        client.wait_until_ready()
        handles = [client.submit(request(i, n_generate)) for i in range(n_slots)]
        for handle in handles:
            handle.wait()
    return summary(decodes, sampled, n_slots)


def request(i: int, n_generate: int) -> CompletionRequest:
    """Return one of the conversations that run side by side, with the default samplers."""
    text = f"Chapter {i + 1}. The lighthouse keeper counted the ships that passed,"
    options = {"n_predict": n_generate, "ignore_eos": True, "seed": i, "cache_prompt": False}
    return CompletionRequest(prompt=text, on_event=lambda event: None, **options)


def timed(work: Callable[..., Any], spans: list[Span]) -> Callable[..., Any]:
    """Return `work` noting when it ran, and over how many tokens."""

    def run(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        result = work(*arguments, **options)
        n_tokens = len(arguments[0]) if arguments and hasattr(arguments[0], "__len__") else 1
        spans.append((started, time.perf_counter(), n_tokens))
        return result

    return run


def summary(decodes: list[Span], sampled: list[Span], n_slots: int) -> dict[str, float]:
    """Return the figures over pairs of decodes in which every slot had one token."""
    whole, inside, sampling = [], [], []
    for one, after in zip(decodes, decodes[1:], strict=False):
        if one[2] == after[2] == n_slots:
            whole.append(after[0] - one[0])
            inside.append(one[1] - one[0])
            sampling.append(sum(end - start for start, end, _ in sampled
                                if one[1] <= start < after[0]))  # fmt: skip
    median = [statistics.median(spans) * 1e6 for spans in (whole, inside, sampling)]
    found = dict(zip(("step_us", "decode_us", "sampling_us"), median, strict=True))
    spans = list(zip(whole, inside, sampling, strict=True))
    outside = [(step - decode) / step for step, decode, _ in spans]
    scheduler = [(step - decode - chosen) / step for step, decode, chosen in spans]
    found["outside_percent"] = 100 * statistics.median(outside)
    found["scheduler_percent"] = 100 * statistics.median(scheduler)
    return found | {"n_steps": len(whole)}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], **json.loads(sys.argv[2]))))
