"""Kernels compile and link for the levels of other machines, though only those can run them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.make import foreign_level

ROOT = Path(__file__).resolve().parents[3]
UNITS = ("team", "matmul.q5_0", "matmul.q6_k", "attention.iq4_nl.q5_1")


@pytest.mark.parametrize("name", foreign_level.LEVELS)
def test_kernels_compile_for(name):
    command = [sys.executable, "-m", "tests.make.foreign_level", name, *UNITS]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert [line.split()[0] for line in run.stdout.splitlines()] == list(UNITS)
