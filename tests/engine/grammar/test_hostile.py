"""Hostile grammars, patterns and schemas end in a sentence, or work, within bounds."""

import json
import time

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from tests.make.small_vocab import SmallVocab

TABLE = TokenTable.of(SmallVocab([b"ab", b"aaaa", b'"a"']))
SECONDS = 1.5  # of this thread, on a busy machine; most take a hundredth


def rules(n, body, last='"a"?'):
    lines = [f"r{i} ::= {body.format(next=f'r{i + 1}')}" for i in range(n)]
    return "root ::= r0\n" + "\n".join(lines) + f"\nr{n} ::= {last}"


def nested(n):
    schema = {}
    for _ in range(n):
        schema = {"items": schema}
    return schema


REFUSED = [
    ("groups", "gbnf", "root ::= " + "(" * 60000 + '"a"' + ")" * 60000, "deeper than"),
    ("text", "gbnf", 'root ::= "' + "a" * 300_000 + '"', "shorten"),
    ("literal", "gbnf", 'root ::= "' + "a" * 100_000 + '"', "larger than"),
    ("many rules", "gbnf", rules(5000, '"a" {next}'), "more than 1,000 rules"),
    ("wide", "gbnf", rules(900, "{next} {next}"), "."),
    ("ring", "gbnf", 'root ::= "x" r0\n' + rules(900, '"a" {next} | "b" root')[12:], "too deep"),
    ("groups", "regex", "(" * 60000 + "a" + ")" * 60000, "deeper than"),
    ("repetitions", "regex", "((a{1,100}){1,100}){1,100}", "more than 100,000 times"),
    ("number", "regex", "a{99999999999999999999}", "too large"),
    ("nesting", "schema", '{"items":' * 60000 + "{}" + "}" * 60000, "deeper than"),
    ("nesting of objects", "schema", nested(5000), "deeper than"),
    ("reference to itself", "schema", {"$ref": "#"}, "refers to itself"),
    (
        "references in a circle",
        "schema",
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}},
        },
        "refers to itself",
    ),
    (
        "endless value",
        "schema",
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        "no value fulfils it",
    ),
    (
        "long chain",
        "schema",
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(500)} | {"d500": True},
        },
        "too large",
    ),
    ("maxLength", "schema", {"type": "string", "maxLength": 10**30}, "“maxLength” at #"),
    ("minLength", "schema", {"type": "string", "minLength": 10**9}, "“minLength” at #"),
    ("minItems", "schema", {"type": "array", "minItems": 10**9}, "“minItems"),
    ("maxProperties", "schema", {"type": "object", "maxProperties": 10**9}, "“minProperties / max"),
    (
        "counting",
        "schema",
        {
            "type": "array",
            "maxItems": 5000,
            "contains": {"const": 1},
            "minContains": 100,
            "maxContains": 300,
        },
        "too large",
    ),
    ("multipleOf", "schema", {"multipleOf": 123456789}, "“multipleOf” at #"),
    (
        "properties",
        "schema",
        {"type": "object", "properties": {f"p{i}": {} for i in range(5000)}},
        ".",
    ),
    (
        "alternatives",
        "schema",
        {
            "allOf": [
                {"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(14)
            ]
        },
        "alternatives",
    ),
    (
        "patterns",
        "schema",
        {"patternProperties": {f"a.*{i}": {"minimum": i} for i in range(20)}},
        "“patternProperties” at #",
    ),
    ("values", "schema", {"enum": list(range(100_000))}, "more than 10,000 values"),
    ("not finite", "schema", '{"minimum": 1e999}', "finite number"),
    ("digits", "schema", '{"const": 1' + "0" * 5000 + "}", "not JSON"),
    ("no JSON values", "schema", {"const": object()}, "not JSON"),
]

MAKERS = {
    "gbnf": Constraint.from_gbnf,
    "regex": Constraint.from_regex,
    "schema": Constraint.from_json_schema,
}


@pytest.mark.parametrize(
    "name, kind, given, message", REFUSED, ids=[f"{r[1]} {r[0]}" for r in REFUSED]
)
def test_refused_in_time(name, kind, given, message):
    begin = time.thread_time()
    with pytest.raises(GrammarError, match=message) as caught:
        MAKERS[kind](given).begin(TABLE)
    assert time.thread_time() - begin < SECONDS
    assert len(str(caught.value)) < 500


FOLLOWED = [
    ("one after another", "regex", "(a|a|aa)*b"),
    ("plus of plus", "regex", "^(([a-z])+.)+[A-Z]([a-z])+$"),
    ("window", "regex", ".*a.{1000}"),
    ("windows", "regex", "(.*a.{50}.*b.{60}){30}"),
    ("counts of counts", "regex", "((a{1,30}){1,30}){1,30}"),
    ("doubling", "gbnf", rules(30, "{next} {next}", '"a"')),
    ("ambiguous", "gbnf", 'root ::= "(" root ")" | a a a a a a\na ::= [a-z]*'),
    ("empty loops", "gbnf", "root ::= ((([a]* | [b]?)* [c]*)*)*"),
    ("long strings", "schema", {"type": "string", "minLength": 50_000, "maxLength": 100_000}),
    ("long pattern", "schema", {"type": "string", "pattern": "a{1,50000}b{1,50000}c"}),
    (
        "lists of lists",
        "schema",
        {"type": "array", "minItems": 9000, "items": {"type": "array", "minItems": 9000}},
    ),
    (
        "many properties",
        "schema",
        {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(300)}},
    ),
    (
        "recursion",
        "schema",
        {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}},
    ),
    (
        "many kinds",
        "schema",
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": f"v{i}"}}, "required": ["k"]}
                for i in range(60)
            ]
        },
    ),
    ("half a pair", "schema", '{"enum": ["\\ud800", "a"]}'),
    ("NUL and others", "schema", {"const": "\0\x7f\u2028\x1f"}),
]


@pytest.mark.parametrize("name, kind, given", FOLLOWED, ids=[f"{f[1]} {f[0]}" for f in FOLLOWED])
def test_followed_in_time(name, kind, given):
    """Each mask is made in time; a grammar that becomes too complex says so."""
    begin = time.thread_time()
    try:
        matcher = MAKERS[kind](given).begin(TABLE)
        for _ in range(30):
            matcher.mask()
            fitting = (byte for byte in b'ab"{[(0123456789\\' + bytes(range(32, 127)))
            token = next((byte for byte in fitting if matcher.accepts(byte)), None)
            if token is None:
                break
            matcher.accept(token)
    except GrammarError as error:
        assert "complex" in str(error)
    assert time.thread_time() - begin < SECONDS


def test_a_grammar_that_cannot_begin_is_refused():
    with pytest.raises(GrammarError, match="no text matches it"):
        Constraint.from_json_schema({"const": json.loads('"\\ud800"')})
