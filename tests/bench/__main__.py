"""Inglenook and llama.cpp in one run, alternating: medians and ratios per model.

    python -m tests.bench [--rounds N] [--threads N] [--depth N] [--models smollm2,gemma3,…]

Synthetic models have random weights: one decoder of 1.1 billion parameters per quantization.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from tests.make.models import folder

ROOT = Path(__file__).resolve().parents[2]
# Model: the ratios that the project asks of itself, prompt and generation.
TARGETS = {
    "smollm2": (4.5, 1.6),
    "gemma3": (2.7, 1.25),
    "llama:1.1B:Q4_0": (2.3, 1.03),
    "llama:1.1B:Q4_K_M": (2.0, 1.0),
    "llama:1.1B:Q8_0": (2.6, 1.05),
}
COLUMNS = "{:20} {:>8} {:>8} {:>6} {:>6}   {:>8} {:>8} {:>6} {:>6}   {:>7} {:>7}"


def main() -> None:
    """Print one row per model."""
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--depth", type=int, default=0, help="tokens in memory beforehand")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--models", default=",".join(TARGETS))
    options = parser.parse_args()
    print("tokens per second (medians), ratio and its target; peak memory ratio; load seconds")
    print(COLUMNS.format("", "prompt", "theirs", "ratio", "asked", "gener.", "theirs", "ratio",
                         "asked", "memory", "load"))  # fmt: skip
    for name in options.models.split(","):
        print_row(name, model_file(name), options)


def model_file(name: str) -> Path:
    """Return a test model's file, or the synthetic one that `name` describes, written once."""
    if ":" not in name:
        return folder() / f"{name}.gguf"
    path = folder() / "synthetic" / (name.replace(":", "-") + ".gguf")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        subprocess.check_call(
            [sys.executable, "-m", "engine", "bench", "--synthetic", name, "--write", part],
            cwd=ROOT,
        )
        part.replace(path)
    return path


def print_row(name: str, path: Path, options: argparse.Namespace) -> None:
    """Measure one model, alternating, and print medians beside the targets."""
    rounds = [(run("ours", path, options), run("theirs", path, options))
              for _ in range(options.rounds)]  # fmt: skip
    ours = {key: statistics.median(pair[0][key] for pair in rounds) for key in rounds[0][0]}
    theirs = {key: statistics.median(pair[1][key] for pair in rounds) for key in rounds[0][1]}
    cells = [name]
    for key, target in zip(("prompt", "generate"), TARGETS.get(name, (0, 0)), strict=True):
        cells += [f"{ours[key]:.1f}", f"{theirs[key]:.1f}", f"{ours[key] / theirs[key]:.2f}",
                  f"{target:.2f}"]  # fmt: skip
    cells += [f"{ours['peak_bytes'] / theirs['peak_bytes']:.2f}", f"{ours['load_s']:.2f}"]
    print(COLUMNS.format(*cells), flush=True)


def run(side: str, path: Path, options: argparse.Namespace) -> dict:
    """One measurement of one side, in its own process."""
    numbers = (options.prompt, options.generate, options.threads, options.depth)
    command = [sys.executable, "-m", f"tests.bench.{side}", str(path), *map(str, numbers)]
    return json.loads(subprocess.check_output(command, cwd=ROOT).splitlines()[-1])


if __name__ == "__main__":
    main()
