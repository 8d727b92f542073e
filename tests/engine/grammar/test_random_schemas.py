"""Random schemas and values: accepted is what a validator by the letter calls valid."""

import itertools
import json
import random

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from tests.make.small_vocab import SmallVocab
from tests.reference.json_schema import valid

TABLE = TokenTable.of(SmallVocab())
SCALARS = [None, True, False, 0, 1, 2, 1.5, -1, "", "a", "ab", "b"]


def random_value(rng, depth=0):
    kind = rng.random()
    if kind < 0.5 or depth > 1:
        return rng.choice(SCALARS)
    if kind < 0.75:
        return [random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {key: random_value(rng, depth + 1) for key in rng.sample("abc", rng.randint(0, 3))}


def random_schema(rng, depth=0):
    if depth > 2 or rng.random() < 0.1:
        return rng.choice([True, False, {"type": "string"}, {"type": "integer"}, {"minimum": 1}])
    makers = rng.sample(list(MAKERS), rng.randint(1, 3))
    schema = {}
    for name in makers:
        schema |= MAKERS[name](rng, depth + 1)
    return schema


def some(rng, depth, n=3):
    return [random_schema(rng, depth) for _ in range(rng.randint(1, n))]


def by_key(rng, depth, keys="abc"):
    return {key: random_schema(rng, depth) for key in rng.sample(keys, rng.randint(1, 2))}


def keys(rng):
    return rng.sample("abcd", rng.randint(1, 2))


TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
MAKERS = {
    "type": lambda r, d: {"type": r.choice([r.choice(TYPES), r.sample(TYPES, 3)])},
    "enum": lambda r, d: {"enum": [random_value(r) for _ in range(3)]},
    "const": lambda r, d: {"const": random_value(r)},
    "bounds": lambda r, d: {
        r.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]): r.choice(
            [-1, 0, 1.5]
        )
    },
    "lengths": lambda r, d: {r.choice(["minLength", "maxLength"]): r.randint(0, 2)},
    "pattern": lambda r, d: {"pattern": r.choice(["^a", "b$", "^[ab]$", "a|b", "^(ab)*$"])},
    "sizes": lambda r, d: {r.choice(["minItems", "maxItems"]): r.randint(0, 2)},
    "items": lambda r, d: {"items": random_schema(r, d)},
    "prefix": lambda r, d: {"prefixItems": some(r, d, 2)},
    "contains": lambda r, d: {"contains": random_schema(r, d), "minContains": r.randint(0, 2)},
    "at most": lambda r, d: {"contains": random_schema(r, d), "maxContains": r.randint(1, 2)},
    "properties": lambda r, d: {"properties": by_key(r, d)},
    "required": lambda r, d: {"required": keys(r)},
    "patterns": lambda r, d: {
        "patternProperties": {r.choice(["a", "^b", "[bc]"]): random_schema(r, d)}
    },
    "additional": lambda r, d: {"additionalProperties": random_schema(r, d)},
    "names": lambda r, d: {"propertyNames": random_schema(r, d)},
    "counts": lambda r, d: {r.choice(["minProperties", "maxProperties"]): r.randint(0, 2)},
    "dependent": lambda r, d: {"dependentRequired": {r.choice("abc"): keys(r)}},
    "dependent schemas": lambda r, d: {"dependentSchemas": by_key(r, d)},
    "all": lambda r, d: {"allOf": some(r, d)},
    "any": lambda r, d: {"anyOf": some(r, d)},
    "one": lambda r, d: {"oneOf": some(r, d)},
    "not": lambda r, d: {"not": random_schema(r, d)},
    "if": lambda r, d: {word: random_schema(r, d) for word in ("if", "then", "else")},
}


def orders(value):
    """Yield a value with the keys of its objects in every order."""
    if isinstance(value, list):
        yield from (list(items) for items in itertools.product(*map(orders, value)))
    elif isinstance(value, dict):
        for keys_ in itertools.permutations(value):
            for items in itertools.product(*(orders(value[key]) for key in keys_)):
                yield dict(zip(keys_, items, strict=True))
    else:
        yield value


def accepts(begin, value):
    for each in itertools.islice(orders(value), 1500):
        matcher = begin.clone()
        if matcher.accept_text(json.dumps(each).encode()) and matcher.may_end:
            return True
    return False


def compare(seed):
    """Return whether a random schema was honoured; then all values are judged alike."""
    rng = random.Random(seed)
    schema = {"$defs": {"x": random_schema(rng, 1)}, "allOf": [random_schema(rng)]}
    if rng.random() < 0.2:
        schema["properties"] = {**schema.get("properties", {}), "a": {"$ref": "#/$defs/x"}}
    values = [random_value(rng) for _ in range(25)]
    try:
        begin = Constraint.from_json_schema(schema).begin(TABLE)
    except GrammarError as error:
        if "no value fulfils it" in str(error):
            assert not any(valid(schema, value) for value in values), json.dumps(schema)
        return False
    for value in values:
        assert accepts(begin, value) == valid(schema, value), (
            f"{json.dumps(schema)}\n{json.dumps(value)} valid: {valid(schema, value)}"
        )
    return True


@pytest.mark.parametrize("block", range(4))
def test_random_schemas(block):
    assert sum(compare(seed) for seed in range(block * 15, block * 15 + 15)) > 8
