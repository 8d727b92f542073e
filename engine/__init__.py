"""From a GGUF file to streamed text: the engine's public names, and the order to read it in.

Read upwards: `errors`, `params`, `gguf`, `text`, `compute`, `memory`, `models`, `runtime`,
`sampling`, `server`, `client`. Each name below is imported when it is first used, so that
`import engine` costs a few milliseconds and a program that only reads a header stays small.
"""

import importlib

TYPE_CHECKING = False  # as in typing, whose import would cost more than all of this module
if TYPE_CHECKING:
    from engine.client.client import EngineClient as EngineClient
    from engine.client.fake import FakeClient as FakeClient
    from engine.client.handle import CompletionHandle as CompletionHandle
    from engine.client.machine import cpu_level as cpu_level
    from engine.errors import ContextFullError as ContextFullError
    from engine.errors import EngineError as EngineError
    from engine.errors import GrammarError as GrammarError
    from engine.errors import InternalError as InternalError
    from engine.errors import MachineError as MachineError
    from engine.errors import ModelFileError as ModelFileError
    from engine.errors import RequestError as RequestError
    from engine.errors import StateFileError as StateFileError
    from engine.errors import TemplateError as TemplateError
    from engine.errors import UnsupportedModelError as UnsupportedModelError
    from engine.gguf.split import piece_paths as piece_paths
    from engine.grammar.check import CONSTRAINT_KINDS as CONSTRAINT_KINDS
    from engine.grammar.check import check_constraint as check_constraint
    from engine.grammar.check import constraint_options as constraint_options
    from engine.params import CompletionRequest as CompletionRequest
    from engine.params import ContextParams as ContextParams
    from engine.params import SamplingParams as SamplingParams
    from engine.runtime import Context as Context
    from engine.runtime import Model as Model
    from engine.runtime import ModelInfo as ModelInfo
    from engine.runtime import read_model_info as read_model_info
    from engine.sampling import SAMPLING_SETTINGS as SAMPLING_SETTINGS
    from engine.sampling import SamplerChain as SamplerChain
    from engine.server.decision import Decision as Decision
    from engine.server.events import Failed as Failed
    from engine.server.events import Finished as Finished
    from engine.server.events import PromptProgress as PromptProgress
    from engine.server.events import TextDelta as TextDelta
    from engine.server.events import Timings as Timings
    from engine.server.events import TokenProb as TokenProb
    from engine.server.metrics import Metrics as Metrics
    from engine.server.metrics import SlotStatus as SlotStatus
    from engine.server.places import KnownPrefix as KnownPrefix
    from engine.server.rerank import Ranked as Ranked
    from engine.server.slot_files import SlotFile as SlotFile

_HOME = {
    "CONSTRAINT_KINDS": "engine.grammar.check",
    "CompletionHandle": "engine.client.handle",
    "CompletionRequest": "engine.params",
    "Context": "engine.runtime",
    "ContextFullError": "engine.errors",
    "ContextParams": "engine.params",
    "Decision": "engine.server.decision",
    "EngineClient": "engine.client.client",
    "EngineError": "engine.errors",
    "Failed": "engine.server.events",
    "FakeClient": "engine.client.fake",
    "Finished": "engine.server.events",
    "GrammarError": "engine.errors",
    "InternalError": "engine.errors",
    "KnownPrefix": "engine.server.places",
    "MachineError": "engine.errors",
    "Metrics": "engine.server.metrics",
    "Model": "engine.runtime",
    "ModelFileError": "engine.errors",
    "ModelInfo": "engine.runtime",
    "PromptProgress": "engine.server.events",
    "Ranked": "engine.server.rerank",
    "RequestError": "engine.errors",
    "SAMPLING_SETTINGS": "engine.sampling",
    "SamplerChain": "engine.sampling",
    "SamplingParams": "engine.params",
    "SlotFile": "engine.server.slot_files",
    "SlotStatus": "engine.server.metrics",
    "StateFileError": "engine.errors",
    "TemplateError": "engine.errors",
    "TextDelta": "engine.server.events",
    "Timings": "engine.server.events",
    "TokenProb": "engine.server.events",
    "UnsupportedModelError": "engine.errors",
    "check_constraint": "engine.grammar.check",
    "constraint_options": "engine.grammar.check",
    "cpu_level": "engine.client.machine",
    "piece_paths": "engine.gguf.split",
    "read_model_info": "engine.runtime",
}

__all__ = sorted(_HOME)  # noqa: PLE0605  (the table is the list)


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module “engine” has no public name “{name}”")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
