"""Models stored in several files: the names of the pieces, and whether they belong together."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import ModelFileError
from engine.gguf.header import Header

_PIECE = re.compile(r"(?P<stem>.+)-(?P<no>\d{5})-of-(?P<count>\d{5})(?P<end>\.gguf)", re.I)


class SplitName(NamedTuple):
    """A file name such as `big-00002-of-00003.gguf`: stem "big", piece 2 of 3."""

    stem: str
    piece: int
    n_pieces: int


def split_name(name: str) -> SplitName | None:
    """Return the parts of a piece's file name, or None if it is not named like a piece."""
    found = _PIECE.fullmatch(name)
    if found is None:
        return None
    no, count = int(found["no"]), int(found["count"])
    return SplitName(found["stem"], no, count) if 1 <= no <= count else None


def piece_paths(path: Path) -> list[Path]:
    """Return the paths of all pieces, in order, of a file named like a piece, else the path."""
    found = _PIECE.fullmatch(path.name)
    if found is None or split_name(path.name) is None:
        return [path]
    stem, count, end = found["stem"], found["count"], found["end"]
    return [path.with_name(f"{stem}-{no:05d}-of-{count}{end}") for no in range(1, int(count) + 1)]


def pieces_of(path: Path, metadata: dict[str, Any]) -> list[Path]:
    """Return all files of the model that a file with this metadata is a piece of.

    Raises ModelFileError when a piece is missing or the name hides where the others are.
    """
    count = _number(metadata, "split.count", 1)
    if count <= 1:
        return [path]
    named = split_name(path.name)
    if named is None or named.n_pieces != count:
        no = _number(metadata, "split.no", 0) + 1
        raise ModelFileError(
            f"This file is piece {no} of {count}, but its name does not say so; name the pieces"
            f" NAME-{no:05d}-of-{count:05d}.gguf and keep them in one folder."
        )
    pieces = piece_paths(path)
    for no, piece in enumerate(pieces, 1):
        if not piece.exists():
            raise ModelFileError(
                f"Piece {no} of {count} of this model is missing: put “{piece.name}”"
                " into the same folder."
            )
    return pieces


def check_pieces(pieces: Sequence[Path], headers: Sequence[Header]) -> None:
    """Raise ModelFileError unless these headers are the pieces of one model, in order."""
    if len(pieces) == 1:
        return
    for i, (piece, header) in enumerate(zip(pieces, headers, strict=True)):
        no = _number(header.metadata, "split.no", -1)
        if no != i or _number(header.metadata, "split.count", 0) != len(pieces):
            raise ModelFileError(
                f"“{piece.name}” is not piece {i + 1} of {len(pieces)} of this model: its name"
                " and its header differ; download or copy it again."
            )
    n_tensors = sum(len(header.places) for header in headers)
    promised = _number(headers[0].metadata, "split.tensors.count", n_tensors)
    if promised != n_tensors:
        raise ModelFileError(
            f"The pieces of this model hold {n_tensors:,} tensors and should hold {promised:,}:"
            " they are not from one download; get all of them again."
        )


def _number(metadata: dict[str, Any], key: str, default: int) -> int:
    value = metadata.get(key, default)
    if not isinstance(value, int):
        raise ModelFileError(f"This file is damaged: {key} is not a number; download it again.")
    return value
