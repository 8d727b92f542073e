"""The two real models the tests run on: found in a cache folder, never part of the project."""

import hashlib
import os
from functools import cache
from pathlib import Path

import platformdirs
import pytest

SHA256 = {
    "smollm2.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "gemma3.gguf": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
}


def folder() -> Path:
    """Return where `packaging/dev.py test` puts the test models."""
    given = os.environ.get("INGLENOOK_TEST_MODELS")
    cache_root = platformdirs.user_cache_dir("inglenook", appauthor=False)
    return Path(given) if given else Path(cache_root) / "test-models"


def smollm2() -> Path:
    """Return SmolLM2-135M-Instruct Q4_1, the starter model, or skip."""
    return _require("smollm2.gguf")


def gemma3() -> Path:
    """Return gemma-3-270m Q4_K_M (a base model without a chat template), or skip."""
    return _require("gemma3.gguf")


def _require(name: str) -> Path:
    path = folder() / name
    if not path.exists():
        pytest.skip(f"{name} is not in {folder()}: packaging/dev.py test fetches it")
    if not _sum_is_right(path):
        pytest.fail(f"{path} is not the published file: delete it and run the tests again")
    return path


@cache
def _sum_is_right(path: Path) -> bool:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256[path.name]
