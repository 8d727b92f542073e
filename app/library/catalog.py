"""The models that may be fetched on request, as resources/catalog.toml lists them."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from app.errors import StorageError
from app.files import storage_error
from app.strings import tr


@dataclass(frozen=True)
class CatalogModel:
    """One model: the file it becomes, its size and SHA-256, and the package that carries it."""

    id: str
    name: str
    help: str
    file: str
    n_bytes: int
    sha256: str
    licence: str
    package: str
    version: str
    page: str
    is_starter: bool = False


def read_catalog(path: Path) -> list[CatalogModel]:
    """Return the models of a catalogue; raises StorageError when it cannot be read."""
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
        names = {each.name for each in fields(CatalogModel)}
        models = stated.get("model", [])
        return [CatalogModel(**{k: v for k, v in m.items() if k in names}) for m in models]
    except OSError as error:
        raise storage_error(error, path) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise StorageError(
            tr("“{name}” is damaged ({reason}); install again.", name=path.name, reason=str(error))
        ) from error
