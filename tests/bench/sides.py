"""Runs the two programs: fresh processes, taking turns, over a file in one known state."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.make.models import folder

ROOT = Path(__file__).resolve().parents[2]
PIECE_BYTES = 16 << 20


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


def settle(path: Path) -> None:
    """Compile what a model needs, then bring its file into the page cache afresh, front to back.

    The kernel keeps a file in the pieces in which it first arrived: one that a program has touched
    here and there lies in small pages, and is decoded up to a third slower than one read through.
    """
    prepare = [sys.executable, "-m", "engine", "prepare", "--model", str(path)]
    subprocess.check_call(prepare, cwd=ROOT)
    with open(path, "rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        piece = bytearray(PIECE_BYTES)
        while file.readinto(piece):
            pass


def run(side: str, job: str, path: Path, **numbers: Any) -> dict[str, float]:
    """Return one measurement of one side ("ours" or "theirs"), in its own process."""
    command = [sys.executable, "-m", f"tests.bench.{side}", job, str(path), json.dumps(numbers)]
    return json.loads(subprocess.check_output(command, cwd=ROOT).splitlines()[-1])


def alternate(
    job: str, path: Path, n_rounds: int, **numbers: Any
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the medians of both sides over rounds in which they take turns at going first."""
    settle(path)
    found: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for i in range(n_rounds):
        for side in sorted(found, reverse=bool(i % 2)):
            found[side].append(run(side, job, path, **numbers))
    return medians(found["ours"]), medians(found["theirs"])


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each value over measurements of one kind."""
    return {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}
