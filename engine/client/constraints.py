"""What a request allows its answer to be: grammar, schema or pattern, and how long to reason."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from engine.errors import GrammarError, InternalError
from engine.grammar import Constraint, LazyMatcher, Matcher, ReasoningBudget, TokenTable, Trigger
from engine.grammar.reasoning import State
from engine.params import CompletionRequest

# How models mark the part of an answer that is thinking; a template mentions its own pair.
REASONING_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
N_REMEMBERED = 32  # constraints that are kept for the next request


def make_matcher(request: CompletionRequest, vocab: Any) -> Matcher | LazyMatcher | None:
    """Return what follows a request's grammar, json_schema or regex, or None without any.

    An answer that the prompt begins goes on inside its grammar; a beginning that does not fit
    leaves the grammar to what follows. Raises GrammarError with the place for what cannot be
    honoured.
    """
    made = _matcher(request, vocab)
    begun = _begun(request.prompt)
    if made is None or not begun or _takes(made, begun, vocab):
        return made
    return _matcher(request, vocab)


def _matcher(request: CompletionRequest, vocab: Any) -> Matcher | LazyMatcher | None:
    constraint = _constraint(request, vocab)
    if constraint is None:
        if request.grammar_lazy:
            raise GrammarError("“grammar_lazy” needs a “grammar”, a “json_schema” or a “regex”.")
        return None
    matcher = constraint.begin(TokenTable.of(vocab))
    if not request.grammar_lazy:
        return matcher
    triggers = [_trigger(value, vocab) for value in request.grammar_triggers]
    return LazyMatcher(matcher, triggers)


def _begun(prompt: Any) -> str:
    """Return the beginning of the answer that stands at the end of a prompt, or ""."""
    last = prompt[-1] if isinstance(prompt, tuple) and prompt else None
    is_begun = isinstance(last, Mapping) and last.get("role") == "assistant"
    content = last.get("content") if is_begun and isinstance(last, Mapping) else ""
    return content if isinstance(content, str) else ""


def _takes(matcher: Matcher | LazyMatcher, begun: str, vocab: Any) -> bool:
    """Let a matcher follow the beginning of an answer; False if it cannot, and is used up then."""
    if isinstance(matcher, Matcher):
        return matcher.accept_text(begun.encode("utf-8", "replace"))
    try:
        for token in vocab.tokenize(begun, parse_special=False, add_special=False):
            matcher.accept(token)
    except (GrammarError, InternalError):
        return False
    return True


def _constraint(request: CompletionRequest, vocab: Any) -> Constraint | None:
    """Return the constraint; a grammar takes the place of a schema."""
    if request.regex is not None:
        if request.grammar is not None or request.json_schema is not None:
            raise GrammarError("An answer is held to a “regex” or to a grammar, not to both.")
        return _from_regex(request.regex)
    if request.grammar is not None:

        def tokenize(text: str) -> list[int]:
            return vocab.tokenize(text, parse_special=True, add_special=False)

        return Constraint.from_gbnf(request.grammar, tokenize)
    if request.json_schema is None:
        return None
    try:
        schema = request.json_schema
        return _from_schema(schema if isinstance(schema, str) else json.dumps(schema))
    except (GrammarError, TypeError, ValueError) as error:
        raise GrammarError(f"“json_schema”: {error}") from error


@lru_cache(N_REMEMBERED)
def _from_regex(pattern: str) -> Constraint:
    return Constraint.from_regex(pattern)


@lru_cache(N_REMEMBERED)
def _from_schema(text: str) -> Constraint:
    schema = json.loads(text)
    return Constraint.from_json_schema({"type": "object"} if schema == {} else schema)


def _trigger(value: Any, vocab: Any) -> Trigger:
    """Return a trigger; a word that is one token of the model is met as that token."""
    trigger = Trigger.read(value)
    if trigger.kind == "word":
        ids = vocab.tokenize(str(trigger.value), parse_special=True, add_special=False)
        if len(ids) == 1:
            return Trigger("token", ids[0])
    return trigger


class Reasoning:
    """How one model marks its reasoning, as token ids; a model that does not reason has none."""

    def __init__(self, template_source: str, vocab: Any) -> None:
        self._vocab = vocab
        self.start, self.end = next(
            (
                (self._ids(start), self._ids(end))
                for start, end in REASONING_TAGS
                if start in template_source and end in template_source
            ),
            ([], []),
        )

    def _ids(self, text: str) -> list[int]:
        return self._vocab.tokenize(text, parse_special=True, add_special=False)

    def budget(self, n_tokens: int, prompt: Sequence[int]) -> ReasoningBudget | None:
        """Return the budget for an answer to `prompt`; None for a model that does not reason.

        `n_tokens` below 0 is no limit. The prompt may have opened the reasoning already.
        """
        if not self.start or not self.end:
            return None
        opened, closed = _last(prompt, self.start), _last(prompt, self.end)
        state = State.COUNTING if opened > closed else State.IDLE
        piece = self._vocab.piece
        return ReasoningBudget([self.start], [self.end], self.end, n_tokens, piece, state)


def _last(tokens: Sequence[int], sequence: Sequence[int]) -> int:
    """Return where a sequence of tokens stands last, or -1."""
    n, wanted = len(sequence), list(sequence)
    for at in range(len(tokens) - n, -1, -1):
        if tokens[at] == wanted[0] and list(tokens[at : at + n]) == wanted:
            return at
    return -1
