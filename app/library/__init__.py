"""The model files on this machine: found where other programs keep them, used in place.

    places.py    the folders in which models are looked for, by system
    walk.py      walking a folder within limits
    ollama.py    the readable names behind Ollama's numbered files
    models.py    FoundModel, and all places scanned into one list
    catalog.py   the models that may be fetched on request
    starter.py   fetching one, checked, when a person asks for it

Nothing here writes to a folder of another program, and nothing here reads a model's inside: what
its metadata says comes from a function that the caller gives.
"""

from app.library.catalog import CatalogModel, read_catalog
from app.library.models import FoundModel, Scan, described, scan
from app.library.places import Place
from app.library.starter import fetch, install_wheel

__all__ = [
    "CatalogModel",
    "FoundModel",
    "Place",
    "Scan",
    "described",
    "fetch",
    "install_wheel",
    "read_catalog",
    "scan",
]
