"""JSON Schema by hand: every keyword with texts it accepts and rejects, and refusals with place."""

import json

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from tests.make.small_vocab import SmallVocab

TABLE = TokenTable.of(SmallVocab())
DATES = ("2024-02-29", "2023-12-31")
S, I = {"type": "string"}, {"type": "integer"}  # noqa: E741
PRODUCT = {
    "type": "object",
    "properties": {
        "productId": {"type": "integer"},
        "productName": {"type": "string"},
        "price": {"type": "number", "exclusiveMinimum": 0},
        "tags": {
            "type": "array",
            "items": {"enum": ["a", "b"]},
            "minItems": 1,
            "uniqueItems": True,
        },
        "dimensions": {
            "type": "object",
            "properties": {k: {"type": "number"} for k in ("length", "width", "height")},
            "required": ["length", "width", "height"],
        },
    },
    "required": ["productId", "productName", "price"],
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": I,
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}
CASES = [
    (
        "any",
        True,
        ["1", '"a"', "[1, {}]", "null", '{"a": [[]]}'],
        ["", "nul", "[1,]", "{1:2}", "01"],
    ),
    ("empty", {}, ["1", "{}"], ["x"]),
    ("integer", I, ["0", "-1", "12", "1.0"], ["1.5", '"1"', "01", "+1", "--1"]),
    ("number", {"type": "number"}, ["0", "-1.5", "1e3", "2.5E-7"], [".5", "1.", "1e", "NaN"]),
    ("min", {"type": "integer", "minimum": 3}, ["3", "10", "100"], ["2", "-3", "0"]),
    ("min -5", {"type": "integer", "minimum": -5}, ["-5", "0", "7"], ["-6", "-10"]),
    ("max 30", {"type": "integer", "maximum": 30}, ["30", "0", "-99"], ["31", "100"]),
    ("0..23", {"type": "integer", "minimum": 0, "maximum": 23}, ["0", "9", "23"], ["24", "-1"]),
    ("15..300", {"type": "integer", "minimum": 15, "maximum": 300}, ["15", "300"], ["14", "301"]),
    (
        "-123..42",
        {"type": "integer", "minimum": -123, "maximum": 42},
        ["-123", "42"],
        ["-124", "43"],
    ),
    ("0<x<1", {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, ["0.5", '"x"'], ["0", "1", "1.0"]),
    (
        "ex int",
        {"type": "integer", "exclusiveMinimum": 2.5, "exclusiveMaximum": 5},
        ["3", "4"],
        ["5"],
    ),
    ("multiple", {"multipleOf": 0.01, "minimum": 0}, ["0.25", "3"], ["0.255", "-1"]),
    (
        "multiples",
        {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
        ["24"],
        ["8"],
    ),
    ("boolean", {"type": "boolean"}, ["true", "false"], ["True", "1"]),
    ("null", {"type": "null"}, ["null"], ["0"]),
    ("types", {"type": ["integer", "null"]}, ["1", "null"], ['"a"', "1.5"]),
    ("const", {"const": 'a"b\\\n'}, ['"a\\"b\\\\\\n"'], ['"a"']),
    ("const object", {"const": {"a": [1, None]}}, ['{"a": [1, null]}'], ['{"a": [1]}', "{}"]),
    (
        "enum",
        {"enum": ["red", 5, None, [1]]},
        ['"red"', "5", "5.0", "null", "[1]"],
        ['"blue"', "6"],
    ),
    ("not enum", {"type": "string", "not": {"enum": ["a"]}}, ['"b"', '"aa"'], ['"a"', "1"]),
    ("not type", {"not": {"type": "string"}}, ["1", "{}"], ['"a"']),
    (
        "lengths",
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"äöü"', '"🙂🙂"'],
        ['"a"'],
    ),
    ("escapes count once", {"type": "string", "maxLength": 1}, ['"\\u00e4"', '"\\n"'], ['"ab"']),
    ("pairs count once", {"type": "string", "maxLength": 1}, ['"\\ud83d\\ude42"'], ['"\\ud83d"']),
    ("pattern", {"pattern": "^[a-z]+-\\d{2}$"}, ['"ab-12"'], ['"ab-1"', '"xab-12y"', '"AB-12"']),
    ("search", {"type": "string", "pattern": "b"}, ['"abc"', '"b"'], ['"ac"']),
    ("top-level or", {"type": "string", "pattern": "^a$|^bc$"}, ['"a"', '"bc"'], ['"ac"', '"abc"']),
    ("quotes", {"type": "string", "pattern": '^"\\\\.$'}, ['"\\"\\\\x"'], ['"\\\\x"']),
    (
        "pattern and length",
        {"type": "string", "pattern": "^a*$", "maxLength": 2},
        ['"aa"'],
        ['"aaa"'],
    ),
    ("not pattern", {"type": "string", "not": {"pattern": "b"}}, ['"ac"'], ['"abc"']),
    ("date", {"type": "string", "format": "date"}, [f'"{d}"' for d in DATES], ['"2023-02-29"']),
    ("time", {"type": "string", "format": "time"}, ['"12:34:56Z"'], ['"25:00:00Z"', '"12:34"']),
    ("uuid", {"format": "uuid"}, ['"2eb8aa08-aa98-11ea-b4aa-73b441d16380"', "1"], ['"2eb8"']),
    (
        "formats in a tuple",
        {
            "prefixItems": [{"type": "string", "format": f} for f in ("date", "uuid", "date-time")],
            "items": False,
            "minItems": 3,
        },
        ['["2024-01-01", "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2024-01-01T12:34:56.789Z"]'],
        ['["2024-01-01"]', "[]"],
    ),
    ("items", {"type": "array", "items": I}, ["[]", "[1, 2]"], ['["a"]', "[1, ]"]),
    (
        "tuple",
        {"prefixItems": [I, S], "items": False},
        ["[]", '[1, "a"]'],
        ['["a"]', '[1, "a", 2]'],
    ),
    ("old tuple", {"items": [I, S], "additionalItems": False}, ['[1, "a"]'], ['[1, "a", 2]']),
    ("min", {"items": I, "type": "array", "minItems": 2}, ["[1, 2]", "[1,2,3]"], ["[1]", "[]"]),
    ("max 0", {"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ("max 1", {"type": "array", "maxItems": 1, "items": I}, ["[]", "[1]"], ["[1, 2]"]),
    ("contains", {"type": "array", "contains": {"const": 1}}, ["[1]", "[2, 1, 3]"], ["[]", "[2]"]),
    (
        "contains twice at most",
        {"type": "array", "contains": {"const": 1}, "minContains": 0, "maxContains": 2},
        ["[]", "[1, 2, 1]"],
        ["[1, 1, 2, 1]"],
    ),
    (
        "unique",
        {"type": "array", "items": {"enum": [1, "a"]}, "uniqueItems": True},
        ['[1, "a"]'],
        ["[1, 1]"],
    ),
    (
        "required in order",
        {"properties": {"b": S, "a": S}, "required": ["a", "b"], "type": "object"},
        ['{"b": "1", "a": "2"}', '{"b": "1", "a": "2", "c": 3}'],
        ['{"a": "1", "b": "2"}', '{"a": "1"}', "{}"],
    ),
    (
        "optional",
        {"properties": {"a": I, "b": I, "c": I}, "additionalProperties": False, "type": "object"},
        ["{}", '{"a": 1}', '{"b": 1, "c": 2}', '{"a": 1, "c": 2}'],
        ['{"d": 1}', '{"a": 1,}', '{"a": "x"}'],
    ),
    (
        "additional schema",
        {"type": "object", "properties": {"a": I}, "additionalProperties": S},
        ['{"a": 1, "b": "x"}', '{"b": "x", "cc": "y"}'],
        ['{"b": 1}', '{"b": "x", "a": "y"}'],
    ),
    (
        "empty name",
        {"type": "object", "properties": {"": I}, "required": [""]},
        ['{"": 1}'],
        ["{}"],
    ),
    (
        "odd names",
        {"properties": {'"\\\n': I}, "required": ['"\\\n'], "type": "object"},
        ['{"\\"\\\\\\n": 1}'],
        ["{}"],
    ),
    (
        "common prefixes",
        {
            "type": "object",
            "properties": {"a": I, "ab": I, "ac": I},
            "additionalProperties": {"type": "null"},
        },
        ['{"a": 1, "ac": 2}', '{"ad": null}', '{"abc": null}'],
        ['{"a": null}', '{"ad": 1}'],
    ),
    (
        "sizes",
        {"type": "object", "minProperties": 1, "maxProperties": 2},
        ['{"a": 1}'],
        ["{}", '{"a":1,"b":2,"c":3}'],
    ),
    (
        "at least one of two",
        {
            "type": "object",
            "properties": {"a": I, "b": I},
            "additionalProperties": False,
            "minProperties": 1,
        },
        ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 2}'],
        ["{}"],
    ),
    (
        "patterns",
        {
            "type": "object",
            "patternProperties": {"^n_": I, "_s$": S},
            "additionalProperties": False,
        },
        ['{"n_a": 1, "x_s": "y"}', "{}"],
        ['{"n_a": "x"}', '{"n_s": 1}', '{"z": 1}'],
    ),
    ("names", {"type": "object", "propertyNames": {"maxLength": 2}}, ['{"ab": 1}'], ['{"abc": 1}']),
    (
        "dependent",
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        ['{"a": 1, "b": 2}', '{"b": 1}'],
        ['{"a": 1}'],
    ),
    (
        "if",
        {
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b"]}, "size": I},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"required": ["size"]},
            "else": {"properties": {"size": False}},
            "additionalProperties": False,
        },
        ['{"kind": "a", "size": 1}', '{"kind": "b"}'],
        ['{"kind": "a"}', '{"kind": "b", "size": 1}'],
    ),
    (
        "one of",
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": k}, k: I}, "required": ["k", k]}
                for k in "xy"
            ]
        },
        ['{"k": "x", "x": 1}', '{"k": "y", "y": 1}'],
        ['{"k": "x", "y": 1}', '{"k": "z", "x": 1}'],
    ),
    (
        "one of overlapping",
        {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 9}]},
        ["4", "10"],
        ["7"],
    ),
    (
        "all of",
        {"allOf": [{"properties": {"a": I}}, {"required": ["a"]}], "type": "object"},
        ['{"a": 1}'],
        ["{}"],
    ),
    (
        "all of enums",
        {"allOf": [{"enum": ["a", "b", "c"]}, {"enum": ["b", "c", "d"]}]},
        ['"b"', '"c"'],
        ['"a"'],
    ),
    ("any of", {"anyOf": [I, {"type": "string", "maxLength": 1}]}, ["1", '"a"'], ['"ab"', "null"]),
    (
        "unevaluated",
        {"allOf": [{"properties": {"a": I}}], "type": "object", "unevaluatedProperties": False},
        ['{"a": 1}'],
        ['{"b": 1}'],
    ),
    (
        "tree",
        TREE,
        ['{"value": 1, "next": {"value": 2, "next": null}}'],
        ['{"next": null}', '{"value": 1, "next": 2}'],
    ),
    (
        "ref into a property",
        {"$ref": "#/properties/a", "properties": {"a": I}},
        ["1"],
        ["{}", '"a"'],
    ),
    (
        "impossible option",
        {"type": "object", "properties": {"a": False, "b": I}},
        ['{"b": 1}', "{}"],
        ['{"a": 1}'],
    ),
    (
        "product",
        PRODUCT,
        ['{"productId": 1, "productName": "a", "price": 1.5, "tags": ["b", "a"]}']
        + [
            '{"productId": 1, "productName": "a", "price": 0.1,'
            ' "dimensions": {"length": 1, "width": 2, "height": 3}}'
        ],
        ['{"productId": 1, "productName": "a", "price": 0}']
        + ['{"productId": 1, "price": 2, "productName": "a"}']
        + ['{"productId": 1, "productName": "a", "price": 1, "tags": ["a", "a"]}'],
    ),
]


def accepts(constraint, text):
    matcher = constraint.begin(TABLE)
    return matcher.accept_text(text.encode()) and matcher.may_end


@pytest.mark.parametrize("name, schema, good, bad", CASES, ids=[case[0] for case in CASES])
def test_keyword(name, schema, good, bad):
    constraint = Constraint.from_json_schema(schema)
    assert [text for text in good if not accepts(constraint, text)] == []
    assert [text for text in bad if accepts(constraint, text)] == []


def test_a_schema_may_be_given_as_its_json():
    assert Constraint.from_json_schema(json.dumps(PRODUCT)) == Constraint.from_json_schema(PRODUCT)


def test_space_stands_only_where_a_writer_puts_it():
    constraint = Constraint.any_json()
    indented = json.dumps({"a": [1, {"b": None}], "c": {}}, indent=2)
    for text in (indented, '{"a":1}', '{ "a": 1 }', "[ ]", "{}", '{"a": 1, "b": 2}'):
        assert accepts(constraint, text)
    for text in (" {}", "{} ", '{"a" : 1}', '{"a":  1}', "[1 ,2]", "{" + " " * 9 + "}"):
        assert not accepts(constraint, text)


def test_additional_keys_cannot_hide_a_named_one():
    """The same name spelt with an escape is the same name."""
    schema = {"type": "object", "properties": {"a": I}, "additionalProperties": S}
    constraint = Constraint.from_json_schema(schema)
    assert not accepts(constraint, '{"\\u0061": "x"}')


@pytest.mark.parametrize(
    "schema, message",
    [
        ({"type": "text"}, "“type” at # names 'text'"),
        ({"properties": {"a": {"items": {"type": 3}}}}, "“type” at #/properties/a/items"),
        (
            {"properties": {"a/b": {"minimum": "1"}}},
            "“minimum” at #/properties/a~1b must be a finite",
        ),
        (
            {"type": "string", "maxLenght": 3},
            "“maxLenght” at # is no keyword; did you mean “maxLength”",
        ),
        ({"type": "string", "nullable": True}, "“nullable” at #"),
        ({"type": "string", "format": "phone"}, "“format” at # names 'phone'"),
        ({"items": {"uniqueItems": True, "type": "array"}}, "“uniqueItems” at #/items needs"),
        ({"not": {"multipleOf": 3}}, "“multipleOf” at #/not is negated"),
        ({"$ref": "other.json"}, "“.ref” at # leads to other.json"),
        ({"$ref": "#/$defs/x"}, "“.ref” at # leads to #/.defs/x"),
        ({"$ref": "#"}, "# refers to itself"),
        ({"pattern": "(?=a)b"}, "“pattern” at # cannot be used: The pattern uses look-around"),
        ({"pattern": "(a"}, "never closed .line 1, column 1"),
        ({"pattern": "(a)\\1"}, "not regular"),
        ({"pattern": "a^b"}, "uses . or . inside"),
        ({"patternProperties": {"[": {}}}, "“patternProperties” at # cannot be used"),
        ({"anyOf": []}, "“anyOf” at # must be a list of schemas"),
        ({"properties": {"a": 3}}, "#/properties/a is 3"),
        ({"required": "a"}, "“required” at # must be a list of names"),
        ({"enum": 3}, "“enum” at # must be a list"),
        ({"minItems": -1}, "“minItems” at # must be a whole number"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no value fulfils it"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "“.schema” at # names"),
        (False, "no value fulfils it"),
        ([], "must be an object"),
        ("{", "is not JSON"),
        ("[1]", "must be an object"),
    ],
)
def test_refusals_name_the_keyword_and_its_place(schema, message):
    with pytest.raises(GrammarError, match=message):
        Constraint.from_json_schema(schema)
