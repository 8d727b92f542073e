"""Matmul kernels on every other CPU level that this machine can run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import env
from engine.native import level

ROOT = Path(__file__).resolve().parents[4]
# Between them: nibbles with fifth bits, unsigned bytes, both K layouts, halves.
TYPES = ("q5_0", "q8_0", "q5_k", "q6_k", "f16")


@pytest.mark.parametrize("name", [n for n in level.runnable() if n != level.host().name])
def test_products_on_level(name):
    run = subprocess.run(
        [sys.executable, "-m", "tests.make.products", *TYPES],
        cwd=ROOT,
        env=os.environ | {env.CPU_LEVEL.name: name},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
