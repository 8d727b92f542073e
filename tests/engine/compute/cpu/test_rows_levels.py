"""Attention, row and team kernels on every other CPU level that this machine can run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import env
from engine.native import level

HERE = Path(__file__).resolve().parent
TESTS = [HERE / f"test_{name}.py" for name in ("attention", "store", "pointwise", "team")]
# One type for each way to keep codes: the others differ in their numbers.
TESTS += [HERE / "test_kv_types.py", "-k", "not (f32 or q5_0 or q4_0 or q4_1)"]


@pytest.mark.parametrize("name", [n for n in level.runnable() if n != level.host().name])
def test_rows_on_level(name):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", *TESTS],
        cwd=HERE.parents[3],
        env=os.environ | {env.CPU_LEVEL.name: name},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout
    assert " skipped" not in run.stdout
