"""Attacks on grammars, patterns, schemas and triggers: a sentence in time and in bounded memory."""

import copy
import json
import random
import time

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, LazyMatcher, TokenTable, Trigger
from tests.make.resident import growth
from tests.make.shared import path
from tests.make.small_vocab import SmallVocab

TABLE = TokenTable.of(SmallVocab([b"ab", b"aaaa", b'"a"', b"a" * 30, b" " * 16, b" word"]))
SECONDS = 2.5  # a second, where neither a measurement of coverage nor a neighbour slows Python
BYTES = 300e6
WORD = TABLE.pieces.index(b" word")


def wrapped(n, wrap, core=True):
    for _ in range(n):
        core = wrap(core)
    return core


def names(n, form="n{}"):
    return [form.format(i) for i in range(n)]


def ring(n_rules, n_ways):
    """Rules that all begin alike and lead into each other: masks that grow with the text."""
    lines = [
        f'r{i} ::= "a" ( {" | ".join(f"r{(7 * i + 13 * j) % n_rules}" for j in range(n_ways))} )'
        ' | "b"'
        for i in range(n_rules)
    ]
    return 'root ::= "x" r0\n' + "\n".join(lines)


STARS, CLASS = "*" * 10_000, "".join(f"\\U{i:08X}" for i in range(256, 16_384, 3))
GBNF = {
    "alternatives": "root ::= " + " | ".join(f'"{i}"' for i in range(5000)),
    "nine thousand alike": "root ::= " + " | ".join(['"a"'] * 9000),
    "nested stars": "root ::= " + "(" * 90 + '"a"' + ")*" * 90,
    "nested options": "root ::= " + "(" * 90 + '"a"?' + ")?" * 90,
    "stacked stars": 'root ::= "a"' + STARS,
    "stacked mixed": 'root ::= "a"*+?{0,3}*+?{0,3}*+?{0,3}',
    "ambiguous alternatives": "root ::= " + " ".join(['("a" | "ab" | "b")'] * 1500),
    "ambiguous tail": 'root ::= s\ns ::= "a" s s | ""',
    "catalan": 'root ::= "a" | "(" root root ")" | "a" root root root',
    "ring": ring(60, 20),
    "wider ring": ring(200, 3),
    "chain": "root ::= r0\n"
    + "\n".join(f'r{i} ::= "a" r{i + 1} | "b" r{i} | ""' for i in range(900))
    + '\nr900 ::= "c"',
    "three long gaps": 'root ::= [^x]{0,1999} "x" [^y]{0,1999} "y" [^z]{0,1999}',
    "any, any, any": "root ::= " + " ".join([".*"] * 500),
    "any between letters": "root ::= " + " ".join(['.* "a"'] * 500),
    "class of thousands": f"root ::= [{CLASS}]* [^{CLASS}]" + "{1,200}",
    "surrogates": 'root ::= "\\uD800" | "\\uDFFF"',
    "beyond Unicode": 'root ::= "\\UFFFFFFFF"',
    "NUL": 'root ::= "\\x00" "a" | "\x00"',
    "long name": "a" * 200_000 + ' ::= "b"',
    "long unknown name": "root ::= " + "a" * 200_000,
    "unknown names": "root ::= " + " ".join(names(15_000)),
    "comment": 'root ::= "a"\n' + "#" * 250_000,
    "empty lines": "\n" * 200_000 + 'root ::= "a"',
    "binary": bytes(range(256)).decode("latin1") * 900,
    "quotes": "root ::= " + '"' * 250_000,
    "tokens": "root ::= " + " ".join(f"<[{i % 250}]>" for i in range(5000)),
    "all but tokens": "root ::= " + " | ".join(f"!<[{i}]>" for i in range(250)),
    "gaps of tokens": "root ::= (!<[3]>){0,2000} <[3]> (!<[3]>){0,2000}",
    "one rule over and over": "\n".join(['root ::= "a"'] * 20_000),
}
REGEX = {
    "(a+)+": "(a+)+$",
    "(a|a)*": "(a|a)*" * 200,
    "gaps": "(.*)*" * 50,
    "counted": "(x{0,500}y{0,500}){0,200}",
    "many words": "|".join(names(20_000, "word{}")),
    "prefixes": "|".join("a" * i for i in range(1, 600)),
    "options": "(a?){500}a{500}",
    "window": "(.|\n)*a(.|\n){300}",
    "stars": "a" + STARS,
    "star of a plus": "a+*",
    "pipes": "|" * 200_000,
    "dots": "." * 100_000,
    "classes": "[^a]" * 3000,
    "escapes": "\\x41" * 20_000,
    "letters": "\\p{L}{1,3000}",
    "large class": "[" + "".join(map(chr, range(0x4E00, 0x9FFF))) + "]+",
    "option in option": "".join(f"(a{i}?" for i in range(90)) + ")" * 90,
    "look-ahead": "(?=.*a)(?=.*b).{8,}",
    "back reference": "(a+)\\1",
    "half a pair": "\\ud800",
    "nothing": "[^\\w\\W]",
    "beyond Unicode": "\\u{110000}",
}
LONG = "k" * 1_500_000
SCHEMAS = {
    "long description": {"type": "string", "description": "x" * 10_000_000},
    "long text": '{"const":"' + "y" * 10_000_000 + '"}',
    "long pattern": {"type": "string", "pattern": "a" * 10_000_000},
    "long name": {"properties": {LONG: {}}, "required": [LONG]},
    "long values": {"enum": ["z" * 900 + str(i) for i in range(9999)]},
    "values": {"enum": [f"value number {i}" for i in range(9999)]},
    "values of values": {"enum": [{"a": [i, {"b": i}]} for i in range(3000)]},
    "junk": '{"enum":[' + "1," * 1_000_000 + "1]}",
    "definitions": {"$defs": {f"d{i}": {"minLength": i % 50} for i in range(150_000)}},
    "deep allOf": wrapped(90, lambda x: {"allOf": [x]}),
    "deeper allOf": wrapped(5000, lambda x: {"allOf": [x]}),
    "a tree that is one leaf": wrapped(20, lambda x: {"anyOf": [x, x]}),
    "a tree of objects": wrapped(
        14, lambda x: {"properties": {"a": x, "b": x}, "required": ["a", "b"], "type": "object"}
    ),
    "a tree of one": wrapped(
        8, lambda x: {"oneOf": [x, {"type": "object", "properties": {"a": x}}]}
    ),
    "not not not": wrapped(40, lambda x: {"not": x}, {"type": "string"}),
    "if in if": wrapped(
        30, lambda x: {"if": {"properties": {"a": {"const": 1}}}, "then": x, "else": x}
    ),
    "a fan of references": {
        "$ref": "#/$defs/d0",
        "$defs": {
            f"d{i}": {"properties": {f"p{j}": {"$ref": f"#/$defs/d{(3 * i + j) % 40}"}}}
            for i in range(40)
            for j in range(10)
        },
    },
    "references that double": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}
        | {"d25": True},
    },
    "objects that double": {
        "$ref": "#/$defs/d0",
        "$defs": {
            f"d{i}": {
                "properties": dict.fromkeys("lr", {"$ref": f"#/$defs/d{i + 1}"}),
                "required": ["l", "r"],
            }
            for i in range(60)
        }
        | {"d60": {"type": "object"}},
    },
    "dynamic": {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
    "long pointer": {"$ref": "#/" + "a/" * 100_000},
    "no address": {"$id": "http://[", "$ref": "http://[::1"},
    "a name as a place": {"$ref": "#/$defs/a/b", "$defs": {"a": 5}},
    "counted pattern": {"type": "string", "pattern": "^(ab){1,100000}$"},
    "pattern and length": {"pattern": "[a-z]+@[a-z]+", "minLength": 1000, "maxLength": 3000},
    "patterns for one text": {"allOf": [{"type": "string", "pattern": f"x{i}"} for i in range(40)]},
    "patterns against one text": {"allOf": [{"not": {"pattern": f"x{i}"}} for i in range(40)]},
    "patterned names": {
        "patternProperties": {f"[a-z]*{c}": {"minimum": 1} for c in "abcdefghijkl"}
    },
    "tiny steps": {"type": "number", "multipleOf": 1e-300},
    "steps of primes": {"allOf": [{"multipleOf": p} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23)]},
    "bounds of digits": {"type": "integer", "minimum": -(10**3000), "maximum": 10**3000},
    "more digits than Python shows": {"minimum": 10**6000},
    "an anyOf of digits": {"anyOf": [{"maxLength": 10**6000}, {"const": 10**6000}]},
    "smallest and largest": {"type": "number", "minimum": 1e-308, "maximum": 1.7e308},
    "required names": {"type": "object", "required": names(5000)},
    "thirty names in any order": {"type": "object", "required": names(30)},
    "hundred names in any order": {"properties": dict.fromkeys(names(100), True)},
    "needed names": {"dependentRequired": dict.fromkeys(names(50), names(50, "m{}"))},
    "needed schemas": {
        "dependentSchemas": {f"a{i}": {"properties": {"x": {"const": i}}} for i in range(30)}
    },
    "many properties": {"type": "object", "minProperties": 2000},
    "a long tuple": {"type": "array", "prefixItems": [{"type": "integer"}] * 5000},
    "counting in counting": wrapped(
        10, lambda x: {"contains": x, "minContains": 5, "maxContains": 9, "maxItems": 30}
    ),
    "all different": {"uniqueItems": True, "items": {"enum": list(range(12))}},
    "what is left": {
        "anyOf": [{"properties": {f"p{i}": {"type": "integer"}}} for i in range(12)],
        "unevaluatedProperties": False,
    },
    "types": {"type": ["string", "number"] * 5000},
    "unknown keywords": {f"x-{i}": i for i in range(100_000)},
    "escapes": '{"const":"' + "\\u0041" * 100_000 + '"}',
    "half pairs": '{"enum":[' + ",".join(['"\\ud83d\\ude00\\ud800"'] * 5000) + "]}",
    "one name over and over": '{"type":"string"' + ',"type":"integer"' * 100_000 + "}",
    "NaN": '{"minimum":NaN}',
    "zeros": "\0" * 1000,
    "lists where names belong": {"format": [], "type": [[]], "required": [[]]},
    "numbers where lists belong": {"prefixItems": 5, "items": True, "unevaluatedItems": False},
    "formats": {
        "properties": {
            f"p{i}": {"type": "string", "format": kind}
            for i, kind in enumerate(["email", "uri", "date-time", "ipv6", "hostname"] * 20)
        }
    },
}
ATTACKS = [
    *(("gbnf", name, text) for name, text in GBNF.items()),
    *(("regex", name, text) for name, text in REGEX.items()),
    *(("schema", name, schema) for name, schema in SCHEMAS.items()),
]
MAKERS = {
    "gbnf": Constraint.from_gbnf,
    "regex": Constraint.from_regex,
    "schema": Constraint.from_json_schema,
}
TRIED = b'ab"{[(x0123456789,:\\]}' + bytes(range(32, 127))


def follow(constraint, n_tokens):
    """Take tokens that fit; each mask in time."""
    matcher = constraint.begin(TABLE)
    matcher.mask()
    for _ in range(n_tokens):
        begun = time.thread_time()
        matcher.mask()
        assert time.thread_time() - begun < 0.5
        token = next((byte for byte in TRIED if matcher.accepts(byte)), None)
        if token is None:
            return
        matcher.accept(token)


@pytest.mark.parametrize(
    ("kind", "name", "given"), ATTACKS, ids=[f"{k} {n}" for k, n, _ in ATTACKS]
)
def test_it_is_followed_or_refused_in_a_sentence(kind, name, given):
    said, constraint, begun = ".", None, time.thread_time()
    with growth() as grown:
        try:
            constraint = MAKERS[kind](given)
        except GrammarError as error:
            said = str(error)
        seconds = time.thread_time() - begun
        try:
            if constraint is not None:
                follow(constraint, 30)
        except GrammarError as error:
            said = str(error)
    assert seconds < SECONDS
    assert grown[0] < BYTES
    is_sentence = len(said) < 700 and said.endswith(".") and "\0" not in said
    assert is_sentence, said[:700]


def test_patterns_for_one_text_are_refused_with_the_place():
    """Forty took 278 s and 20 GB; each one doubles what has to be told apart."""
    parts = [{"type": "string", "pattern": f"x{i}"} for i in range(40)]
    with pytest.raises(GrammarError, match="“pattern” at #/allOf/39 is one of more than 8"):
        Constraint.from_json_schema({"allOf": parts})
    follow(Constraint.from_json_schema({"allOf": parts[:8]}), 5)


def test_a_grammar_that_grows_slower_with_each_token_ends_in_a_sentence():
    with pytest.raises(GrammarError, match="too complex to be followed: it takes too long"):
        follow(Constraint.from_gbnf(ring(60, 20)), 40)


@pytest.mark.parametrize("text", ["a**", "a+*", "(a)?{2}{3}", "a{1}?+"])
def test_a_repetition_of_a_repetition_needs_a_group(text):
    with pytest.raises(GrammarError, match="repeats nothing|possessive"):
        Constraint.from_regex(text)
    follow(Constraint.from_regex("((a*)*)*(b+?)?"), 3)


JUNK = [5, -1, 1.5, True, False, None, "x", "", "(", "#", "#/", "http://[", [], [[]], [1], {}]
JUNK += [{"a": 1}, {"a": []}, float("nan"), float("inf"), 1e308, -0.0, 10**5000, "\ud800", "\0"]
JUNK += [[{}], [True], "a" * 500, {"$ref": "#"}, {"$ref": "#/x"}, 2**63, "%", "#/%zz/~2", "\u2028"]
KEYS = (
    "type enum const multipleOf maximum minimum maxLength minLength pattern maxItems minItems"
    " uniqueItems maxContains minContains maxProperties minProperties required dependentRequired"
    " properties patternProperties additionalProperties propertyNames items prefixItems contains"
    " unevaluatedItems unevaluatedProperties allOf anyOf oneOf not if then else dependentSchemas"
    " $ref $dynamicRef $defs $id $anchor $dynamicAnchor $schema format additionalItems"
).split()


def places(value):
    yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from places(each)


def damaged(schema, rng, others):
    """Return a schema with something else in up to three of its places."""
    schema = copy.deepcopy(schema) if isinstance(schema, dict) else {}
    for _ in range(rng.randint(1, 3)):
        inside = rng.choice(list(places(schema)))
        new = copy.deepcopy(rng.choice(JUNK if rng.random() < 0.7 else others))
        if isinstance(inside, dict):
            known = rng.random() < 0.6 or not inside
            inside[rng.choice(KEYS if known else list(inside))] = new
        elif inside:
            inside[rng.randrange(len(inside))] = new
    return schema


def schemas_of_the_suite():
    folder = path("conformance/json_schema/tests/draft2020-12")
    if folder is None:
        return [{"type": "object", "properties": {"a": {"items": {"anyOf": [{"minimum": 1}, {}]}}}}]
    files = sorted(folder.glob("*.json"))
    return [group["schema"] for file in files for group in json.loads(file.read_text("utf-8"))]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_schemas_never_end_in_an_error_of_python(seed):
    rng, known = random.Random(seed), schemas_of_the_suite()
    n_followed = 0
    for _ in range(300):
        schema = damaged(rng.choice(known), rng, known)
        begun = time.thread_time()
        try:
            follow(Constraint.from_json_schema(schema), 5)
            n_followed += 1
        except GrammarError as error:
            assert len(str(error)) < 700
        assert time.thread_time() - begun < SECONDS
    assert 20 < n_followed < 280


SPELLS = {
    "regex": (
        "a b . * + ? {2} {0,3} {1,100} {1000} { } ( ) (?: (?= (?<n> | [ ] [^ - \\d \\w \\s \\D"
        " \\p{L} \\P{Lu} \\x41 \\u0041 \\u{1F600} \\ud83d\\ude00 \\ud800 ^ $ \\b \\1 \\k<n> \\ é 😀"
        " / # & ~ [^\\w\\W] [a- \\c [\\b] (a*)* (a|b)+ \\p{ \\u{110000} \\xZ"
    ).split(" "),
    "gbnf": (
        'root "a" "b" " [a-z] [^a] [ [^ ( ) * + ? {2} {0,3} {1, {1000} | ::= <[1]> <[99999]> !<[2]>'
        ' <x> . \\ "\\n" "\\x4" "\\u0041" #c - é "é" } "" "\\U0010FFFF" "\\uD800" _ 0'
    ).split(" "),
}


@pytest.mark.parametrize("kind", SPELLS)
def test_random_texts_never_end_in_an_error_of_python(kind):
    rng, n_followed = random.Random(7), 0
    for _ in range(1500):
        text = "".join(rng.choice([*SPELLS[kind], "\n", " "]) for _ in range(rng.randint(1, 18)))
        try:
            if kind == "gbnf":
                follow(Constraint.from_gbnf("root ::= " + text, lambda _: [1]), 5)
            else:
                follow(Constraint.from_regex(text), 5)
            n_followed += 1
        except GrammarError as error:
            assert len(str(error)) < 700
    assert n_followed > 20


def lazy(*triggers):
    matcher = Constraint.from_regex("x[0-9]+").begin(TABLE)
    return LazyMatcher(matcher, [Trigger.read(trigger) for trigger in triggers])


@pytest.mark.parametrize(
    ("triggers", "message"),
    [
        ([""], "1 to 10,000 characters"),
        ([{"type": "pattern", "value": ""}], "1 to 10,000 characters"),
        (["w" * 1_000_000], "1 to 10,000 characters"),
        (names(101), "at most 100 triggers"),
        ([{"type": "pattern", "value": "(" * 4000 + "a" + ")" * 4000}], "nests too deep"),
        ([{"type": "pattern", "value": "(a" * 50}], "no regular expression"),
        ([{"type": "token", "value": "x" * 100_000}], "none for a trigger"),
        ([list(range(100_000))], "needs “type”"),
    ],
)
def test_hostile_triggers_are_refused(triggers, message):
    with pytest.raises(GrammarError, match=message) as caught:
        lazy(*triggers)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "trigger",
    ["<tool>", {"type": "pattern", "value": "call:\\s*(\\{)"}, {"type": "token", "value": 7}],
)
def test_waiting_costs_no_more_the_longer_it_lasts(trigger):
    """Every token used to look through all tokens before it: 17 s for 20,000 of them."""
    matcher = lazy(trigger)
    begun = time.thread_time()
    for _ in range(20_000):
        matcher.accept(WORD)
    assert time.thread_time() - begun < 4
    assert matcher.is_waiting


def test_patterns_share_the_time_of_a_token():
    patterns = [{"type": "pattern", "value": f"(a|aa)+(b|c)d{i}"} for i in range(50)]
    matcher = lazy(*patterns)
    begun = time.thread_time()
    with pytest.raises(GrammarError, match="takes too long"):
        for _ in range(60):
            matcher.accept(ord("a"))
    assert time.thread_time() - begun < 2


def test_a_word_over_tokens_is_found_also_after_going_back():
    matcher = lazy("x1", {"type": "pattern", "value": "y(x2)"})
    for byte in b"ax":
        matcher.accept(byte)
    matcher.rollback(1)
    other = matcher.clone()
    matcher.accept(ord("1"))  # "a1": what was taken back does not count
    assert matcher.is_waiting
    for byte in b"yx2":
        other.accept(byte)
    assert not other.is_waiting and other.may_end and other.accepts(ord("5"))
    other.rollback(1)
    assert other.is_waiting
    other.accept(ord("1"))
    assert not other.is_waiting
