"""The JSON Schema test suite (draft 2020-12): what is honoured is honoured exactly.

Each schema is either refused or accepts all its valid instances and none of the others. An
instance is a value, so its keys may come in any order; `format` is asserted by this program, so
the tests that want it to be only a note are left out.
"""

import itertools
import json
import math

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from tests.make.shared import require
from tests.make.small_vocab import SmallVocab

SUITE = "conformance/json_schema/tests/draft2020-12"
NOTE_ONLY = "is only an annotation by default"
FORMATS = (
    "date time date-time duration uuid ipv4 ipv6 email hostname uri uri-reference json-pointer"
    " relative-json-pointer"
).split()


def spellings(value):
    """Yield a value as JSON, with the keys of its objects in some orders, at most 24."""
    for turn in range(24 if "{" in json.dumps(value) else 1):
        yield json.dumps(_turned(value, turn), ensure_ascii=False)


def _turned(value, turn):
    if isinstance(value, list):
        return [_turned(each, turn) for each in value]
    if not isinstance(value, dict):
        return value
    orders = itertools.islice(itertools.permutations(value), 24)
    order = list(orders)[turn % min(24, math.factorial(len(value)))]
    return {key: _turned(value[key], turn) for key in order}


def accepts_value(begin, value):
    for text in dict.fromkeys(spellings(value)):
        matcher = begin.clone()
        if matcher.accept_text(text.encode()) and matcher.may_end:
            return True
    return False


def run(files, table):
    """Return what went wrong, and counts of schemas and tests, refused and not."""
    wrong, counts = [], {"schemas": 0, "refused schemas": 0, "tests": 0, "refused tests": 0}
    for file in files:
        for group in json.loads(file.read_text("utf-8")):
            tests = [t for t in group["tests"] if NOTE_ONLY not in t["description"]]
            counts["schemas"] += 1
            counts["tests"] += len(tests)
            try:
                constraint = Constraint.from_json_schema(group["schema"])
            except GrammarError as error:
                nothing_fits = "no value fulfils it" in str(error)
                if not nothing_fits or any(t["valid"] for t in tests):
                    counts["refused schemas"] += 1
                    counts["refused tests"] += len(tests)
                    if nothing_fits:
                        wrong.append(f"{file.stem}: {group['description']}: called unfulfillable")
                continue
            begin = constraint.begin(table)
            for test in tests:
                if accepts_value(begin, test["data"]) != test["valid"]:
                    wrong.append(f"{file.stem}: {group['description']}: {test['description']}")
    return wrong, counts


def share(counts):
    return (
        f"{counts['refused schemas']} of {counts['schemas']} schemas refused"
        f" ({counts['refused schemas'] / counts['schemas']:.1%}),"
        f" {counts['refused tests']} of {counts['tests']} tests"
        f" ({counts['refused tests'] / counts['tests']:.1%})"
    )


@pytest.fixture(scope="module")
def table():
    return TokenTable(SmallVocab())


def test_draft_2020_12(table, capsys):
    files = sorted(require(SUITE).glob("*.json"))
    wrong, counts = run(files, table)
    with capsys.disabled():
        print(f"\nJSON Schema draft 2020-12: {share(counts)}")
    assert wrong == []
    assert counts["refused schemas"] <= 48 and counts["refused tests"] <= 190


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, table):
    wrong, counts = run([require(f"{SUITE}/optional/format/{name}.json")], table)
    if name == "hostname":  # valid labels in Punycode are not written
        wrong = [each for each in wrong if "punycode" not in each.lower()]
    assert wrong == []
    assert counts["refused schemas"] == 0
