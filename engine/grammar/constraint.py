"""Constraint: what a text must be, from GBNF, a JSON Schema or a pattern; not yet of a model."""

from dataclasses import dataclass
from typing import Any

from engine.errors import GrammarError
from engine.grammar import lark, library
from engine.grammar.gbnf import Tokenize, read_gbnf
from engine.grammar.lexemes import to_lark
from engine.grammar.matcher import Matcher
from engine.grammar.pattern import read_pattern
from engine.grammar.rules import OneToken, walk
from engine.grammar.schema.values import schema_to_lark
from engine.grammar.tokens import TokenTable


@dataclass(frozen=True)
class Constraint:
    """What a text must be as a whole; immutable, so many matchers may begin from one.

    `kind` is "gbnf", "json_schema" or "regex". `tokens` are the ids that the grammar names. Made
    and checked within a second; raises GrammarError with the place for what cannot be honoured.
    """

    kind: str
    lark: str
    tokens: frozenset[int] = frozenset()

    @classmethod
    def from_gbnf(cls, text: str, tokenize: Tokenize | None = None) -> "Constraint":
        """Read a GBNF text; `tokenize(text) -> ids` is needed for terminals such as <think>."""
        rules = read_gbnf(text, tokenize)
        named = {
            n.token for body in rules.bodies.values() for n in walk(body) if isinstance(n, OneToken)
        }
        return _checked(cls("gbnf", to_lark(rules), frozenset(named)))

    @classmethod
    def from_json_schema(cls, schema: Any) -> "Constraint":
        """Read a JSON Schema (an object, its JSON, or a truth value); {} allows any value."""
        return _checked(cls("json_schema", schema_to_lark(schema)))

    @classmethod
    def any_json(cls) -> "Constraint":
        """Return the constraint to any JSON value."""
        return cls.from_json_schema(True)

    @classmethod
    def from_regex(cls, pattern: str) -> "Constraint":
        """Read a regular expression that the whole text must match."""
        body = lark.terminal(read_pattern(pattern, whole=True))
        return _checked(cls("regex", lark.grammar([("start", "T0"), ("T0", body)])))

    def begin(self, tokens: TokenTable) -> Matcher:
        """Return a matcher at the beginning, for the vocabulary of a model.

        Raises GrammarError for token ids that the vocabulary does not have.
        """
        beyond = [token for token in self.tokens if token >= tokens.n_tokens]
        if beyond:
            raise GrammarError(
                f"The grammar names the token {min(beyond)}, but the model has {tokens.n_tokens:,}."
            )
        return Matcher(tokens, library.begin(tokens.tokenizer, self.lark))


def _checked(constraint: Constraint) -> Constraint:
    """Return a constraint that the library takes and that some text fulfils."""
    if not constraint.tokens:  # token ids need the vocabulary of the model
        if not library.has_a_way(library.begin(library.byte_tokenizer(), constraint.lark)):
            raise GrammarError("The grammar cannot be fulfilled: no text matches it.")
    return constraint
