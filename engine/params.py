"""The frozen settings a caller may choose: context, sampling, one completion.

Field names are the ones people know from llama-server. Every value is checked when the object is
made: an unknown name, a wrong type or a value outside a hard range raises `RequestError`; values
outside a soft range are moved to its edge; None means "not given" (the default).
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from numbers import Real
from typing import Any, TypeVar

from engine.errors import RequestError, nearest

RANDOM_SEED = 0xFFFFFFFF
MAX_INT = 2**31 - 1
KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl")
SAMPLER_ORDER = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)

# What may change while an answer runs, beside the sampling names.
LIVE_LIMITS = ("n_predict", "t_max_predict_ms", "stop", "reasoning_budget")

_T = TypeVar("_T")
Message = Mapping[str, Any]  # {"role": …, "content": …}
Change = tuple[int, Mapping[str, Any]]  # the token it acts on first, names and values
Prompt = str | tuple[int, ...] | tuple[Message, ...]


def _number(
    default: Any,
    kind: type,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    clamps: bool = False,
) -> Any:
    """Declare a numeric field: its default, its type and its range (soft when it clamps)."""
    return field(default=default, metadata={"kind": kind, "range": (low, high), "clamps": clamps})


def _checked_number(name: str, value: Any, rule: Mapping[str, Any]) -> Any:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise RequestError(f"“{name}” must be a finite number, but is {value!r}.")
    if rule["kind"] is int and value != int(value):
        raise RequestError(f"“{name}” must be a whole number, but is {value!r}.")
    low, high = rule["range"]
    if rule["clamps"]:
        return rule["kind"](min(max(value, low), high))
    if not low <= value <= high:
        raise RequestError(f"“{name}” must be between {low} and {high}, but is {value}.")
    return rule["kind"](value)


class _Options:
    """Checks shared by every settings object; a subclass is a frozen dataclass."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value is None and each.default is not dataclasses.MISSING:
                value = each.default
            elif "kind" in each.metadata and value is not None:
                value = _checked_number(each.name, value, each.metadata)
            elif isinstance(each.default, bool) and not isinstance(value, bool):
                raise RequestError(f"“{each.name}” must be true or false, but is {value!r}.")
            self._set(each.name, value)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some fields changed; raises RequestError like the constructor."""
        current = {name: getattr(self, name) for name in option_names(type(self))}
        return type(self)(**{**current, **changes})


def _strict(cls: type[_T]) -> type[_T]:
    """Make the constructor refuse an unknown option with the nearest known name.

    A class with a field `params` also takes the names of SamplingParams and puts them there.
    """
    plain, own = cls.__init__, option_names(cls)
    inner = option_names(SamplingParams) if "params" in own else ()

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in own and name not in inner:
                raise RequestError(f"There is no option “{name}”.{nearest(name, own + inner)}")
        direct = {name: options.pop(name) for name in inner if name in options}
        if direct:
            options["params"] = _sampling(options.get("params")).replace(**direct)
        plain(self, *args, **options)

    cls.__init__ = __init__  # type: ignore[assignment]
    return cls


def option_names(cls: Any) -> tuple[str, ...]:
    """Return the names a settings class accepts, in order."""
    return tuple(each.name for each in fields(cls))


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """Return a string or a list of strings as a tuple; anything else raises RequestError."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Iterable) or isinstance(items, (bytes, Mapping)):
        raise RequestError(f"“{name}” must be a list of texts, but is {value!r}.")
    found = tuple(items)
    if not all(isinstance(item, str) for item in found):
        raise RequestError(f"“{name}” must be a list of texts, but is {value!r}.")
    return found


def _logit_biases(value: Any) -> tuple[tuple[int | str, float], ...]:
    """Return pairs (token id or text, bias); False means never; malformed entries are skipped."""
    pairs = value.items() if isinstance(value, Mapping) else value
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise RequestError("“logit_bias” must be a list of pairs or an object.")
    found: list[tuple[int | str, float]] = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            continue
        token, bias = pair
        if isinstance(value, Mapping) and isinstance(token, str) and token.isdecimal():
            token = int(token)
        if isinstance(token, bool) or not isinstance(token, (int, str)):
            continue
        if bias is False:
            found.append((token, -math.inf))
        elif isinstance(bias, (int, float)) and bias is not True and not math.isnan(bias):
            found.append((token, float(bias)))
    return tuple(found)


@_strict
@dataclass(frozen=True)
class ContextParams(_Options):
    """What one context may hold and how it computes. Counts are tokens; None = chosen for you."""

    n_ctx: int = _number(4096, int, 0, MAX_INT)  # 0 = what the model was trained for
    n_batch: int = _number(2048, int, 1, MAX_INT)
    n_ubatch: int = _number(512, int, 1, MAX_INT)
    n_seq_max: int = _number(1, int, 1, 256)
    n_threads: int | None = _number(None, int, 1, 1024)
    n_threads_batch: int | None = _number(None, int, 1, 1024)
    type_k: str = "f16"
    type_v: str = "f16"
    cache_ram: int = _number(0, int, 0, MAX_INT)  # MiB for snapshots beside the n_ctx tokens
    embeddings: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("type_k", "type_v"):
            value = str(getattr(self, name)).lower()
            if value not in KV_TYPES:
                raise RequestError(f"“{name}” cannot be “{value}”.{nearest(value, KV_TYPES)}")
            self._set(name, value)


@_strict
@dataclass(frozen=True)
class SamplingParams(_Options):
    """How the next token is chosen; `samplers` is the order of the chain."""

    seed: int = _number(RANDOM_SEED, int, -1, RANDOM_SEED)  # -1 and RANDOM_SEED: a fresh one
    temperature: float = _number(0.8, float, 0, clamps=True)
    dynatemp_range: float = _number(0.0, float)
    dynatemp_exponent: float = _number(1.0, float)
    top_k: int = _number(40, int, 0, MAX_INT, clamps=True)
    top_p: float = _number(0.95, float, 0, 1, clamps=True)
    min_p: float = _number(0.05, float, 0, 1, clamps=True)
    typical_p: float = _number(1.0, float)
    top_n_sigma: float = _number(-1.0, float)
    xtc_probability: float = _number(0.0, float, 0, 1, clamps=True)
    xtc_threshold: float = _number(0.1, float, 0, 1, clamps=True)
    repeat_last_n: int = _number(64, int, 0, MAX_INT)
    repeat_penalty: float = _number(1.0, float)
    presence_penalty: float = _number(0.0, float)
    frequency_penalty: float = _number(0.0, float)
    dry_multiplier: float = _number(0.0, float)
    dry_base: float = _number(1.75, float)
    dry_allowed_length: int = _number(2, int, 0, MAX_INT)
    dry_penalty_last_n: int = _number(64, int, 0, MAX_INT)
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = _number(0, int, 0, 2, clamps=True)
    mirostat_tau: float = _number(5.0, float)
    mirostat_eta: float = _number(0.1, float)
    adaptive_target: float = _number(-1.0, float, -3.4e38, 1, clamps=True)
    adaptive_decay: float = _number(0.9, float, 0, 0.99)
    min_keep: int = _number(0, int, 0, MAX_INT)
    logit_bias: tuple[tuple[int | str, float], ...] = ()
    ignore_eos: bool = False
    samplers: tuple[str, ...] = SAMPLER_ORDER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repeat_penalty <= 0 or math.isinf(1 / self.repeat_penalty):
            raise RequestError(f"“repeat_penalty” must be above 0, but is {self.repeat_penalty:g}.")
        breakers = _texts("dry_sequence_breakers", self.dry_sequence_breakers)
        if not breakers:
            raise RequestError("“dry_sequence_breakers” must hold at least one text.")
        self._set("dry_sequence_breakers", breakers)
        self._set("logit_bias", _logit_biases(self.logit_bias))
        self._set("samplers", _texts("samplers", self.samplers))
        if self.seed == -1:
            self._set("seed", RANDOM_SEED)
        if self.dry_base < 1:
            self._set("dry_base", 1.75)


def _prompt(value: Any) -> Prompt:
    """Return a prompt as text, token ids or messages; anything else raises RequestError."""
    if isinstance(value, str):
        return value
    items = tuple(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else None
    if items is not None and all(isinstance(item, Mapping) for item in items):
        return items
    if items is not None and all(hasattr(item, "__index__") for item in items):
        return tuple(int(item) for item in items)
    raise RequestError("“prompt” must be a text, a list of token ids or a list of messages.")


def _sampling(value: Any) -> SamplingParams:
    """Return sampling settings given as an object, a mapping or None; else raises RequestError."""
    if isinstance(value, SamplingParams):
        return value
    if value is None or isinstance(value, Mapping):
        return SamplingParams(**(value or {}))
    raise RequestError("“params” must be SamplingParams or an object of its fields.")


def _schema(value: Any) -> Any:
    if value is not None and not isinstance(value, (Mapping, str, bool)):
        raise RequestError("“json_schema” must be an object.")
    return value


def checked_changes(changes: Mapping[str, Any]) -> None:
    """Raise RequestError for what cannot change while an answer runs, or not to that value."""
    known = option_names(SamplingParams) + LIVE_LIMITS
    for name in changes:
        if name not in known:
            raise RequestError(f"“{name}” cannot change while running.{nearest(name, known)}")
    CompletionRequest(**changes)


def _planned(value: Any) -> tuple[Change, ...]:
    """Return changes by the token they act on first, in order; else raises RequestError."""
    wrong = RequestError("“changes” must be pairs (number of a token, names and values), in order.")
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise wrong
    found: list[Change] = []
    for pair in value:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or type(pair[0]) is not int:
            raise wrong
        at, values = pair
        if not isinstance(values, Mapping) or at < (found[-1][0] if found else 0):
            raise wrong
        checked_changes(values)
        found.append((at, dict(values)))
    return tuple(found)


@_strict
@dataclass(frozen=True)
class CompletionRequest(_Options):
    """One question to the model: a prompt, how to sample, when to stop, who listens.

    `changes` are pairs (n, names and values) that act from token n of the answer on, counted from
    0, as CompletionHandle.update does; those of Finished let an answer be written again.

    `on_event(event)` is called on the engine thread and must return at once; without it the
    handle is iterated. Counts are tokens, times milliseconds, -1 means no limit. Sampling names
    (`temperature=0.2`) may be given directly; they win over `params`.
    """

    prompt: Any = ""
    _: KW_ONLY
    params: SamplingParams = field(default_factory=SamplingParams)
    n_predict: int = _number(-1, int, -1, MAX_INT)
    n_keep: int = _number(0, int, -1, MAX_INT)
    n_discard: int = _number(0, int, 0, MAX_INT)
    n_cache_reuse: int = _number(0, int, 0, MAX_INT)
    n_indent: int = _number(0, int, 0, MAX_INT)
    t_max_predict_ms: int = _number(-1, int, -1, MAX_INT)
    stop: tuple[str, ...] = ()
    cache_prompt: bool = True
    n_cached_most: int = _number(-1, int, -1, MAX_INT)  # of the prompt, where more is remembered
    id_slot: int = _number(-1, int, -1, MAX_INT)
    n: int = _number(1, int, 1, 256)
    n_probs: int = _number(0, int, 0, MAX_INT)
    post_sampling_probs: bool = False
    trace: bool = False  # with n_probs: what each sampler did to the likeliest tokens
    return_progress: bool = True
    grammar: str | None = None
    grammar_first: bool = False  # before the samplers, not where their choice does not fit
    grammar_lazy: bool = False
    grammar_triggers: tuple[Any, ...] = ()
    json_schema: Any = None
    regex: str | None = None
    reasoning_budget: int = _number(-1, int, -1, MAX_INT)
    changes: tuple[Change, ...] = ()
    on_event: Callable[[Any], None] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("prompt", _prompt(self.prompt))
        self._set("stop", tuple(word for word in _texts("stop", self.stop) if word))
        self._set("grammar_triggers", tuple(self.grammar_triggers))
        self._set("json_schema", _schema(self.json_schema))
        self._set("params", _sampling(self.params))
        self._set("changes", _planned(self.changes))
        if self.on_event is not None and not callable(self.on_event):
            raise RequestError("“on_event” must be a function of one event.")
