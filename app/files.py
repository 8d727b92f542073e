"""Files that are written whole or not at all, and damaged ones that are set aside, never lost."""

import errno
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from app.errors import StorageError
from app.strings import tr


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: after a crash the old or the new file is there, whole.

    Raises StorageError; the old file is then unchanged.
    """
    replace_whole(path, lambda file: file.write(content))


def replace_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace `path` by what `write(file)` writes, in the manner of `write_whole`.

    What else `write` raises goes on, the old file unchanged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(prefix=f".{path.name[:60]}.", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise storage_error(error, path) from error


def set_aside(path: Path) -> Path:
    """Rename a damaged file to NAME.damaged-DATE and return its new path.

    Raises StorageError if it cannot be renamed; it then stays where it is.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for number in range(2, 1000):
        if not aside.exists():
            break
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    try:
        os.replace(path, aside)
    except OSError as error:
        raise storage_error(error, path) from error
    return aside


def storage_error(error: OSError, path: Path) -> StorageError:
    """Return the sentence for an operating system's refusal to read or write `path`."""
    folder = str(path.parent)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            tr("The disk is full: free some space; “{name}” was not saved.", name=path.name)
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageError(
            tr("The folder {folder} cannot be written; allow it or choose another.", folder=folder)
        )
    reason = error.strerror or str(error)
    return StorageError(
        tr("“{name}” could not be read or saved ({reason}).", name=path.name, reason=reason)
    )
