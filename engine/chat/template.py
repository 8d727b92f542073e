"""ChatTemplate: messages to the prompt that a model was trained on, as text or as token ids."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Protocol, Self

from jinja2 import Template
from jinja2.exceptions import TemplateSyntaxError

from engine.chat import marked, message
from engine.chat.capabilities import Capabilities, fit, probe
from engine.chat.filters import Refused, raise_unless
from engine.chat.formats import FORMATS, detect, known_to
from engine.chat.meter import Exhausted, Limits, Meter, Metered
from engine.chat.sandbox import ChatEnvironment, Method, line_of
from engine.errors import RequestError, TemplateError

MAX_SOURCE_CHARS = 128 * 1024
DEFAULT_LIMITS = Limits()
KEY = "tokenizer.chat_template"
_TAG = re.compile(r"\s*(<[^<>\s]{1,40}>|\[[A-Z_]{1,40}\])")  # as thoughts are opened
# Refusals of templates that would stop what this program does rightly, by a mark in the source.
_OVERRULED = (
    ("<|channel|>", "You have passed a message containing <|channel|> tags"),
    ("[TOOL_CALLS]", "Assistant message must have"),
)


class Vocabulary(Protocol):
    """What rendering and tokenizing a conversation needs of a vocabulary."""

    @property
    def bos(self) -> int:
        """Token that begins a text, or -1."""

    @property
    def eos(self) -> int:
        """Token that ends a text, or -1."""

    def find(self, text: str) -> int:
        """Token that is this text, or -1."""

    def piece(self, token: int, special: bool = ...) -> bytes:
        """The bytes of a token."""

    def tokenize(self, text: str, parse_special: bool = ..., add_special: bool = ...) -> list[int]:
        """Text to token ids."""

    def tokenize_parts(
        self, parts: Sequence[tuple[str, bool]], add_special: bool = ...
    ) -> list[int]:
        """Texts, each with whether it is plain, to token ids."""


class CompiledTemplate:
    """One template source, compiled; any number of threads may render it at once."""

    def __init__(self, source: str) -> None:
        """Raises TemplateError for a source with a mistake, or one that is too long."""
        self.source = source
        if len(source) > MAX_SOURCE_CHARS:
            raise TemplateError(
                f"The chat template has {len(source):,} characters, more than the "
                f"{MAX_SOURCE_CHARS:,} that are allowed: choose or write a shorter one."
            )
        with Metered(Meter(Limits())):
            try:
                self._template: Template = _environment().from_string(source)
            except TemplateSyntaxError as error:
                raise TemplateError(
                    f"The chat template has a mistake in line {error.lineno}: {error.message}. "
                    "Correct it, or choose a built-in format."
                ) from error
            except Exception as error:
                raise TemplateError(
                    f"The chat template cannot be read ({_reason(error)}): correct it, or choose "
                    "a built-in format."
                ) from error

    def write(
        self, variables: Mapping[str, Any], n_chars: int = 0, limits: Limits = DEFAULT_LIMITS
    ) -> str:
        """Return what the template writes, with the origin of each character.

        `n_chars` is the length of the conversation, which the limits grow with. Raises
        TemplateError with the line and the reason.
        """
        with Metered(Meter(limits.for_input(n_chars))):
            try:
                context = self._template.new_context(dict(variables))
                return marked.concat(self._template.root_render_func(context))
            except Exception as error:
                raise self._explain(error) from error

    def _explain(self, error: Exception) -> TemplateError:
        line = line_of(error, self._template)
        at = f" in line {line}" if line else ""
        if isinstance(error, Refused):
            return TemplateError(f"The chat template refuses this conversation{at}: {error}")
        if isinstance(error, Exhausted):
            return TemplateError(f"The chat template was stopped{at}: it {error}.")
        return TemplateError(
            f"The chat template fails{at}: {_reason(error)}. Correct it, or choose a built-in "
            "format."
        )


class ChatTemplate:
    """The template of one model, and the one it has for conversations with tools, if any."""

    def __init__(
        self, source: str, bos: str = "", eos: str = "", tool_source: str | None = None
    ) -> None:
        """`source` is a template or the name of a format; `bos`, `eos` the texts of these tokens.

        Raises TemplateError for a template with a mistake.
        """
        self.source = FORMATS.get(source, source)
        self.bos, self.eos = bos, eos
        self._plain = CompiledTemplate(self.source)
        self._with_tools = self._plain if tool_source is None else CompiledTemplate(tool_source)
        self._vocab: Vocabulary | None = None

    @classmethod
    def from_model(cls, metadata: Mapping[str, Any], vocab: Vocabulary, override: str = "") -> Self:
        """Return the template of a model file, or `override` (a template or a format's name).

        A file without one gets the format whose marks its vocabulary has, or ChatML. Raises
        TemplateError.
        """
        source, tool_source = metadata.get(KEY), metadata.get(f"{KEY}.tool_use")
        tools = tool_source if isinstance(tool_source, str) else None
        if override:
            source, tools = override, None
        elif not isinstance(source, str) or not source.strip():
            source, tools = tools or known_to(lambda mark: vocab.find(mark) >= 0), None
        elif source == "chatml":
            source, tools = tools or source, None
        made = cls(source, _text(vocab, vocab.bos), _text(vocab, vocab.eos), tools)
        made._vocab = vocab
        return made

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the template does with roles, parts and tools, found by trying."""
        return probe(lambda messages, tools: self._try(messages, tools), self.source)

    @property
    def format_name(self) -> str | None:
        """The built-in format that the template looks like, or None."""
        return detect(self.source)

    def render(self, messages: Any, **options: Any) -> str:
        """Return the prompt as text; options as in `render_parts`."""
        return marked.plain(self._render(messages, **options))

    def render_parts(self, messages: Any, **options: Any) -> list[tuple[str, bool]]:
        """Return the prompt in stretches (text, whether a message wrote it).

        Options: `add_generation_prompt` (True) opens the answer; `continue_last` (False) leaves
        the last message, an answer, open instead; `tools`, a list of function definitions;
        `enable_thinking` (True); `variables`, more names for the template.

        Raises RequestError for malformed messages, TemplateError with line and reason when the
        template fails, refuses, or takes too much time or memory.
        """
        return marked.parts_of(self._render(messages, **options))

    def prompt_tokens(
        self, messages: Any, vocab: Vocabulary | None = None, **options: Any
    ) -> list[int]:
        """Return the prompt as token ids: one BOS, and no control token from what messages say.

        `vocab` is the model's unless given; options and errors as in `render_parts`.
        """
        vocab = vocab or self._vocab
        if vocab is None:
            raise RequestError("A template that is not a model's needs a vocabulary.")
        text = self._render(messages, **options)
        return vocab.tokenize_parts(marked.parts_of(self._once(text, vocab)), add_special=True)

    def _once(self, text: str, vocab: Vocabulary) -> str:
        """Return text without the BOS and EOS that tokenizing adds anyway."""
        edges = vocab.tokenize("", parse_special=False, add_special=True)
        bos, eos = self.bos, self.eos
        if bos and vocab.bos in edges[:1] and _is_template(text[: len(bos)], bos):
            text = text[len(bos) :]
        if eos and vocab.eos in edges[1:] and _is_template(text[-len(eos) :], eos):
            text = text[: -len(eos)]
        return text

    def _render(
        self,
        messages: Any,
        add_generation_prompt: bool = True,
        continue_last: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        enable_thinking: bool = True,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        template = self._with_tools if tools else self._plain
        fitted = fit(message.checked(messages), self.capabilities, self.source)
        begun = ""
        if continue_last and fitted[-1]["role"] == "assistant":
            begun, add_generation_prompt = fitted.pop().get("content", ""), True
        values = self._variables(tools, enable_thinking, variables or {})
        n_chars = message.n_chars(fitted) + message.n_chars(values.get("tools"))
        values["messages"] = fitted
        if add_generation_prompt:
            values["add_generation_prompt"] = True
        written = template.write(values, n_chars)
        return marked.concat((written, _without_tag(begun, marked.plain(written))))

    def _variables(
        self, tools: Any, enable_thinking: bool, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        now = datetime.now()
        overruled = tuple(words for mark, words in _OVERRULED if mark in self.source)
        found: dict[str, Any] = {
            "raise_exception": Method(raise_unless, overruled),
            "bos_token": self.bos,
            "eos_token": self.eos,
            "enable_thinking": enable_thinking,
            "datetime": now.strftime("%b %d %Y"),
            "date_string": now.strftime("%d %b %Y"),
        }
        if tools:
            found["tools"] = message.marked_copy(list(tools))
        found |= {str(name): message.marked_copy(value) for name, value in more.items()}
        preserve, effort = found.get("preserve_reasoning"), found.get("reasoning_effort")
        if isinstance(preserve, bool):
            found["preserve_thinking"] = preserve
            for name in ("clear_thinking", "truncate_history_thinking", "drop_thinking"):
                found[name] = not preserve
        if isinstance(effort, str) and effort:
            found["reasoning_strength"] = effort
        return found

    def _try(self, messages: list[dict[str, Any]], tools: Any) -> str | None:
        """Return what the template writes for a probe, or None where it fails."""
        values = self._variables(tools, True, {})
        values |= {"messages": messages, "add_generation_prompt": True}
        try:
            template = self._with_tools if tools else self._plain
            return marked.plain(template.write(values, 0))
        except TemplateError:
            return None


@cache
def _environment() -> ChatEnvironment:
    return ChatEnvironment()


def _text(vocab: Vocabulary, token: int) -> str:
    return vocab.piece(token, special=True).decode("utf-8", "replace") if token >= 0 else ""


def _is_template(text: str, expected: str) -> bool:
    return text == expected and not isinstance(text, marked.Marked)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it calls itself without end"
    words = str(error).strip().rstrip(".").replace("\n", " ")[:300]
    return words or type(error).__name__


def _without_tag(begun: str, written: str) -> str:
    """Return the beginning of an answer without the tag that the template has just opened."""
    tag = _TAG.match(marked.plain(begun))
    if tag is None or not written.rstrip().endswith(tag[1]):
        return begun
    rest = begun[tag.end() :]
    is_next_line = written.endswith("\n") and marked.plain(rest).startswith("\n")
    return rest[1:] if is_next_line else rest
