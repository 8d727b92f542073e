"""Where reference material lies that tests may read but the project may not contain."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def path(relative: str) -> Path | None:
    """Return the path of a shared reference file, or None on a machine without it."""
    found = SHARED / relative
    return found if found.exists() else None


def require(relative: str) -> Path:
    """Return the path of a shared reference file; skip the test, with the reason, without it."""
    found = path(relative)
    if found is None:
        pytest.skip(f"the reference file {relative} is not on this machine")
    return found
