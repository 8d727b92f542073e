"""The error tree of the engine: each class says who erred, each message is fit to show.

    EngineError
    ├── ModelFileError            the file: damaged, cut short, not what it claims
    │   └── UnsupportedModelError the file is sound, this version cannot run it
    ├── StateFileError            the file: a saved sequence that is damaged or does not fit
    ├── RequestError              the request: an option, prompt or limit we cannot honour
    │   ├── TemplateError         the chat template failed, attacked or ran out of its limits
    │   ├── GrammarError          a grammar, schema or pattern that cannot be honoured
    │   └── ContextFullError      the prompt does not fit the context
    ├── MachineError              the machine: no memory, no disk, no device
    └── InternalError             us: a defect of this program

A message is one sentence with cause and remedy; `kind` is its stable name for programs.
"""

import difflib
from collections.abc import Iterable


class EngineError(Exception):
    """Something went wrong; `str(error)` is one sentence fit to show to a person."""

    kind = "error"


class ModelFileError(EngineError):
    """The model file is damaged, cut short, missing or not a GGUF file."""

    kind = "model file"


class UnsupportedModelError(ModelFileError):
    """The file is sound, but its architecture, quantization or tokenizer is not built in."""

    kind = "unsupported model"


class StateFileError(EngineError):
    """A saved sequence is missing, damaged, foreign or older than this version reads."""

    kind = "state file"


class RequestError(EngineError):
    """The request asks for something that cannot be honoured."""

    kind = "request"


class TemplateError(RequestError):
    """The chat template has a mistake, refused the messages, or exceeded its limits."""

    kind = "template"


class GrammarError(RequestError):
    """A grammar, JSON schema or pattern cannot be honoured."""

    kind = "grammar"


class ContextFullError(RequestError):
    """The prompt does not fit into the context."""

    kind = "context full"


class MachineError(EngineError):
    """The machine lacks something: memory, disk space, a device."""

    kind = "machine"


class InternalError(EngineError):
    """A defect of this program."""

    kind = "internal"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" for the known name closest to `name`, or an empty string."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean “{found[0]}”?" if found else ""
