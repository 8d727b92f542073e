"""Strings and numbers of a schema as terminals."""

import json
import math
from collections.abc import Iterable
from fractions import Fraction

from engine.errors import GrammarError
from engine.grammar import json_text, number_ranges
from engine.grammar.json_text import INTEGER, NUMBER, PLAIN_NUMBER, number_literal, spelt
from engine.grammar.pattern import ANY_TEXT
from engine.grammar.rules import Node
from engine.grammar.schema.terms import (
    Bound,
    Length,
    Matches,
    Multiple,
    Numbers,
    Term,
    Texts,
    Whole,
    numbers_left,
)
from engine.grammar.schema.writing import NEVER, Terminal, Writing, exactly
from engine.grammar.texts import matches

MAX_LENGTH = 100_000  # characters that a length may count
MAX_PATTERNS = 8  # that one text has to match
MAX_STEP = 20_000  # remainders that are told apart for one multiple


def string_node(terms: Iterable[Term], writing: Writing) -> Node:
    """Return the JSON strings that fulfil all terms."""
    terms = list(terms)
    if all(isinstance(term, Length) for term in terms):
        least, most = _length(terms)
        return exactly(json_text.any_string(least, most) if terms else json_text.ANY_STRING)
    listed = string_options(terms)
    if listed is not None:
        return exactly(f"(?:{'|'.join(listed)})") if listed else NEVER
    return writing.all_of(string_parts(terms))


def string_options(terms: Iterable[Term]) -> list[str] | None:
    """Return the regular expressions of the strings that terms list; None if they list none."""
    terms = list(terms)
    listed = [term for term in terms if isinstance(term, Texts) and term.holds]
    if not listed:
        return None
    return [json_text.spelt_text(text) for text in listed[0].values if allows(terms, text)]


def string_parts(terms: Iterable[Term]) -> list[str]:
    """Return Lark terminals that a string of one spelling must all match."""
    terms = list(terms)
    wanted = [term for term in terms if isinstance(term, Matches) and term.holds]
    if len(wanted) > MAX_PATTERNS:  # each doubles what has to be told apart
        raise wanted[-1].source.refuse(
            wanted[-1].keyword, f"is one of more than {MAX_PATTERNS} that a text has to match"
        )
    parts = [f"/{spelt(term.node)}/" for term in wanted]
    least, most = _length(terms)
    if least or most is not None:
        parts.append(f"/{json_text.spelt_length(least, most)}/")
    if not parts:
        parts.append(f"/{spelt(ANY_TEXT)}/")
    parts += [f"~/{spelt(t.node)}/" for t in terms if isinstance(t, Matches) and not t.holds]
    for term in terms:
        if isinstance(term, Texts):
            options = " | ".join(f"/{json_text.spelt_text(text)}/" for text in term.values)
            parts.append(f"({options})" if term.holds else f"~({options})")
    return parts


def key_node(terms: Iterable[Term], parts: Iterable[str], writing: Writing) -> Node:
    """Return the keys, in their one spelling, that fulfil all terms and Lark terminals."""
    return writing.all_of([*string_parts(terms), *parts])


def _length(terms: Iterable[Term]) -> tuple[int, int | None]:
    lengths = [term for term in terms if isinstance(term, Length)]
    least = max((term.least for term in lengths), default=0)
    most = min((term.most for term in lengths if term.most is not None), default=None)
    for term in lengths:
        if max(term.least, term.most or 0) > MAX_LENGTH:
            name = "maxLength" if term.most else "minLength"
            raise term.node.refuse(name, f"is above {MAX_LENGTH:,}; lower it or leave it out")
    return least, most


def allows(terms: Iterable[Term], text: str) -> bool:
    """Whether a text fulfils all terms for strings."""
    return all(_allows(term, text) for term in terms if term.kind == "string")


def _allows(term: Term, text: str) -> bool:
    if isinstance(term, Texts):
        return (text in term.values) == term.holds
    if isinstance(term, Length):
        return term.least <= len(text) and (term.most is None or len(text) <= term.most)
    return not isinstance(term, Matches) or matches(term.node, text) == term.holds


def number_node(terms: Iterable[Term], writing: Writing) -> Node:
    """Return the JSON numbers that fulfil all terms."""
    terms = list(terms)
    listed = number_options(terms)
    if listed is not None:
        return exactly(f"(?:{'|'.join(listed)})") if listed else NEVER
    multiples = [term for term in terms if isinstance(term, Multiple)]
    if multiples:
        return _multiples(terms, multiples)
    if not terms:
        return exactly(NUMBER)
    whole = any(isinstance(term, Whole) and term.holds for term in terms)
    parts = [f"/{INTEGER}/" if whole else f"/{PLAIN_NUMBER}/"]
    for term in terms:
        if isinstance(term, Bound):
            make = number_ranges.at_least if term.is_least else number_ranges.at_most
            parts.append(f"/{_finite(make(term.limit, exclusive=term.exclusive))}/")
        elif isinstance(term, Whole) and not term.holds:
            parts.append(f"~/{INTEGER}/")
        elif isinstance(term, Numbers):
            options = " | ".join(f"/{_finite(number_literal(v))}/" for v in sorted(term.values))
            parts.append(f"~({options})")
    return writing.all_of(parts)


def number_options(terms: Iterable[Term]) -> list[str] | None:
    """Return the regular expressions of the numbers that terms list; None if they list none."""
    terms = list(terms)
    if not any(isinstance(term, Numbers) and term.holds for term in terms):
        return None
    return [_finite(number_literal(value)) for value in numbers_left(terms)]


def _finite(regex: str | None) -> str:
    if regex is None:
        raise GrammarError("The schema cannot be honoured: a number has too many digits.")
    return regex


def _multiples(terms: list[Term], multiples: list[Multiple]) -> Node:
    """Let the library count multiples, which takes plain bounds beside them and nothing else."""
    if any(isinstance(t, Numbers) or (isinstance(t, Whole) and not t.holds) for t in terms):
        raise multiples[0].node.refuse(
            "multipleOf", "beside numbers that are excluded is not supported"
        )
    of = [term.of for term in multiples]
    of += [Fraction(1)] if any(isinstance(term, Whole) for term in terms) else []
    common = _common_multiple(of)
    if common.numerator > MAX_STEP:
        raise multiples[0].node.refuse("multipleOf", f"needs steps above {MAX_STEP:,}")
    schema: dict[str, object] = {"type": "integer" if common.denominator == 1 else "number"}
    schema["multipleOf"] = _plain(common)
    for name, limit in _tightest(terms).items():
        schema[name] = _plain(limit)
    schema["x-guidance"] = {"whitespace_flexible": False}
    return Terminal("%json " + json.dumps(schema), is_rule=True)  # type: ignore[return-value]


def _common_multiple(numbers: list[Fraction]) -> Fraction:
    scale = math.lcm(*(n.denominator for n in numbers))
    return Fraction(math.lcm(*(int(n * scale) for n in numbers)), scale)


def _tightest(terms: list[Term]) -> dict[str, Fraction]:
    """Return the bounds as keywords; where the limit is equal, the exclusive one counts too."""
    found: dict[str, Fraction] = {}
    for term in terms:
        if isinstance(term, Bound):
            name = "inimum" if term.is_least else "aximum"
            name = f"exclusiveM{name}" if term.exclusive else f"m{name}"
            held = found.get(name, term.limit)
            found[name] = max(held, term.limit) if term.is_least else min(held, term.limit)
    return found


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
