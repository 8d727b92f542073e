"""The readable names behind Ollama's numbered files, read from its manifests."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from app.library.walk import FoundFile, Limits, found_file

MAX_MANIFEST_BYTES = 1 << 20
_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")


def ollama_models(root: Path, limits: Limits) -> Iterator[tuple[str, FoundFile]]:
    """Yield (name, blob) of every model in an Ollama folder, such as "llama3.2:1b".

    A manifest lies at manifests/REGISTRY/NAMESPACE/MODEL/TAG and names blobs/sha256-DIGEST.
    """
    manifests = root / "manifests"
    for folder, _, names in os.walk(manifests):
        for name in sorted(names):
            if not limits.take():
                return
            manifest = Path(folder) / name
            blob = _blob(root, manifest)
            if blob is not None:
                yield _readable(manifest.relative_to(manifests).parts), blob


def _readable(parts: tuple[str, ...]) -> str:
    """Return the name that Ollama shows: the parts that say nothing are left out."""
    *path, tag = parts
    if path[:1] == ["registry.ollama.ai"]:
        path = path[1:]
        if path[:1] == ["library"] and len(path) > 1:
            path = path[1:]
    return f"{'/'.join(path)}:{tag}" if path else tag


def _blob(root: Path, manifest: Path) -> FoundFile | None:
    try:
        with open(manifest, "rb") as file:
            stated = json.loads(file.read(MAX_MANIFEST_BYTES))
        layers = stated["layers"]
        digests = [layer["digest"] for layer in layers if layer.get("mediaType") == _MODEL]
        sums = [_DIGEST.fullmatch(digest) for digest in digests]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # not a manifest, or of a kind that is not known
    for found in sums:
        for sign in "-:" if found else "":
            blob = found_file(root / "blobs" / f"sha256{sign}{found[1]}") if found else None
            if blob is not None:
                return blob
    return None
