"""Inglenook and llama.cpp in one run, taking turns: medians beside what the project asks.

    python -m tests.bench [names…] [--rounds N] [--threads N] [--small]

Without names everything is measured, one after the other. Synthetic models have random weights: one
decoder of 1.1 billion parameters per quantization. Leave the machine alone meanwhile.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench import sides
from tests.bench.figures import HEADLINE, Figure

# Model: the ratios asked for, prompt and generation.
SPEEDS = {
    "smollm2": (4.5, 1.6),
    "gemma3": (2.7, 1.25),
    "llama:1.1B:Q4_0": (2.3, 1.03),
    "llama:1.1B:Q4_K_M": (2.0, 1.0),
    "llama:1.1B:Q8_0": (2.6, 1.05),
}
MEMORY_RATIO = 1.1
DEPTH_RATIOS = (2.0, 1.2)
STREAMS_GAIN, STREAMS_RATIO = 2.5, 1.3
LOAD_SHARE = 1 / 20  # of the time that reading the prompt again takes
STALL_MS = 16.0
START_S = 1.5
SCHEDULER_PERCENT = 3.0

Figures = Iterator[Figure]


def main() -> int:
    """Print the figures of each measurement that was asked for; return 1 if one did not run."""
    parser = argparse.ArgumentParser(
        prog="tests.bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="names", help="\n".join(MEASUREMENTS))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that all works")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASUREMENTS):
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    print(HEADLINE, flush=True)
    failed = []
    for name in options.names or MEASUREMENTS:
        try:
            for figure in MEASUREMENTS[name](options):
                print(figure, flush=True)
        except (subprocess.CalledProcessError, OSError) as error:
            failed.append(name)
            print(f"{name} could not be measured: {error}", flush=True)
    return 1 if failed else 0


def speed(name: str, options: argparse.Namespace) -> Figures:
    """Reading a prompt, generating, memory and loading of one model."""
    n_prompt, n_generate = (32, 4) if options.small else (512, 64)
    sizes = {"n_prompt": n_prompt, "n_generate": n_generate, "n_threads": options.threads}
    ours, theirs = sides.alternate("speed", sides.model_file(name), options.rounds, **sizes)
    prompt, generate = SPEEDS[name]
    yield Figure(f"{name} prompt {n_prompt}", ours["prompt"], theirs["prompt"], least=prompt)
    both = ours["generate"], theirs["generate"]
    yield Figure(f"{name} generation {n_generate}", *both, least=generate)
    peaks = (ours["peak_bytes"] / 1e6, theirs["peak_bytes"] / 1e6)
    yield Figure(f"{name} peak memory", *peaks, "MB", most=MEMORY_RATIO)
    yield Figure(f"{name} loaded, first token", ours["load_s"], theirs["load_s"], "s")


def depth(kv_type: str, options: argparse.Namespace) -> Figures:
    """SmolLM2 far into a conversation, with K and V of one type."""
    n_past, n_prompt, n_generate = (256, 32, 4) if options.small else (8192, 512, 32)
    sizes = {"n_past": n_past, "n_prompt": n_prompt, "n_generate": n_generate}
    path = sides.model_file("smollm2")
    ours, theirs = sides.alternate(
        "depth", path, 1, kv_type=kv_type, n_threads=options.threads, **sizes
    )
    label = f"smollm2 {kv_type.upper()} behind {n_past:,}:"
    for (key, n), least in zip(
        (("prompt", n_prompt), ("generate", n_generate)), DEPTH_RATIOS, strict=True
    ):
        yield Figure(f"{label} {key} {n}", ours[key], theirs[key], least=least)


def streams(options: argparse.Namespace) -> Figures:
    """Four conversations in each step, against one and against llama.cpp's four."""
    sizes = {"n_streams": 4, "n_prompt": 32, "n_generate": 4 if options.small else 48}
    path = sides.model_file("llama:1.1B:Q4_0")
    ours, theirs = sides.alternate(
        "streams", path, options.rounds, n_threads=options.threads, **sizes
    )
    yield Figure("1.1B Q4_0 one stream", ours["one"], theirs["one"])
    both = ours["together"], theirs["together"]
    yield Figure("1.1B Q4_0 four streams", *both, least=STREAMS_RATIO)
    gains = (ours["together"] / ours["one"], theirs["together"] / theirs["one"])
    yield Figure("1.1B Q4_0 four streams / one: ours", gains[0], unit="times", least=STREAMS_GAIN)
    yield Figure("1.1B Q4_0 four streams / one: theirs", gains[1], unit="times")


def saved(options: argparse.Namespace) -> Figures:
    """Loading what was remembered of a prompt against reading it again."""
    n_tokens = 640 if options.small else 4096
    path = sides.model_file("smollm2")
    numbers = {"n_tokens": n_tokens, "n_threads": options.threads}
    ours, theirs = sides.alternate("saved", path, min(2, options.rounds), **numbers)
    label = f"smollm2 {n_tokens:,} tokens:"
    for key, words in (("read_s", "read"), ("save_s", "save"), ("load_s", "load")):
        yield Figure(f"{label} {words}", ours[key] * 1e3, theirs[key] * 1e3, "ms")
    yield Figure(f"{label} size", ours["n_bytes"] / 1e6, theirs["n_bytes"] / 1e6, "MB")
    share = ours["load_s"] / ours["read_s"]
    yield Figure(f"{label} load / read", share, unit="times", most=LOAD_SHARE)


def scheduler(options: argparse.Namespace) -> Figures:
    """What a step of four slots costs beside its decode."""
    path = sides.model_file("smollm2")
    sides.settle(path)
    numbers = {"n_slots": 4, "n_generate": 16 if options.small else 128}
    rounds = [
        _last_json("scheduler", str(path), json.dumps({**numbers, "n_threads": options.threads}))
        for _ in range(options.rounds)
    ]
    found = sides.medians(rounds)
    for key, words in (("step_us", "step"), ("decode_us", "decode"), ("sampling_us", "sampling")):
        yield Figure(f"smollm2 four slots: {words}", found[key], unit="µs")
    label = "smollm2 four slots: scheduler, neither decode nor sampling"
    yield Figure(label, found["scheduler_percent"], unit="%", most=SCHEDULER_PERCENT)
    yield Figure("smollm2 four slots: with sampling", found["outside_percent"], unit="%")


def window(n_panes: int, options: argparse.Namespace) -> Figures:
    """The real window: start, model ready, and stalls while answers stream in every pane."""
    sides.settle(sides.model_file("smollm2"))
    lasting = ("--seconds", "2" if options.small else "10", "--panes", str(n_panes))
    found = sides.medians([_last_json("start", *lasting) for _ in range(options.rounds)])
    if n_panes == 1:
        yield Figure("window usable", found["usable_s"], unit="s", most=START_S)
        yield Figure("smollm2 ready after that", found["ready_s"], unit="s", most=START_S)
    label = f"{found['n_running']:.0f} answers streaming: event loop stall"
    yield Figure(f"{label} p99", found["p99_ms"], unit="ms", most=STALL_MS)
    yield Figure(f"{label} longest", found["longest_ms"], unit="ms")


def by_itself(module: str, options: argparse.Namespace) -> Figures:
    """A measurement that prints its own lines, where it is part of this tree."""
    if Path(__file__).with_name(f"{module}.py").exists():
        subprocess.check_call([sys.executable, "-m", f"tests.bench.{module}"], cwd=sides.ROOT)
    yield from ()


def _last_json(module: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", f"tests.bench.{module}", *arguments]
    return json.loads(subprocess.check_output(command, cwd=sides.ROOT).splitlines()[-1])


MEASUREMENTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    **{name: partial(speed, name) for name in SPEEDS},
    "streams": streams,
    "depth-f16": partial(depth, "f16"),
    "depth-q8_0": partial(depth, "q8_0"),
    "saved": saved,
    "scheduler": scheduler,
    "window": partial(window, 1),
    "panes": partial(window, 4),
    "frames": partial(by_itself, "window_frames"),
    "sampling": partial(by_itself, "sampling_cost"),
}

if __name__ == "__main__":
    sys.exit(main())
