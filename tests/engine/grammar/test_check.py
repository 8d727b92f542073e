"""What a person types as a constraint is told in one sentence, or is what a request takes."""

import json
import time

import pytest

import engine

GOOD = {
    "json": "",
    "json_schema": '{"type": "object", "properties": {"a": {"type": "integer"}}}',
    "gbnf": 'root ::= "yes" | "no" <|end|>',
    "regex": "[0-9]{4}-[0-9]{2}",
}


@pytest.mark.parametrize("kind", engine.CONSTRAINT_KINDS)
def test_a_good_constraint_has_nothing_to_say_and_fits_a_request(kind):
    assert engine.check_constraint(kind, GOOD[kind]) == ""
    request = engine.CompletionRequest("x", **engine.constraint_options(kind, GOOD[kind]))
    held = [request.grammar, request.json_schema, request.regex]
    assert sum(value is not None for value in held) == 1


@pytest.mark.parametrize(
    "kind, text, part",
    [
        ("json_schema", '{"type": ', "line 1, column 10"),
        ("json_schema", '{"type": "colour"}', "colour"),
        ("gbnf", "root ::= missing", "missing"),
        ("regex", "(a", ""),
        ("regex", "  ", "nothing here"),
        ("json_schema", "[" * 200_000, "nested"),
    ],
)
def test_a_bad_one_is_told_in_a_sentence_within_a_second(kind, text, part):
    begun = time.thread_time()
    said = engine.check_constraint(kind, text)
    assert said.endswith(".") and part in said
    assert time.thread_time() - begun < 1.0


def test_another_kind_is_refused_with_the_nearest():
    with pytest.raises(engine.RequestError, match="regex"):
        engine.check_constraint("regexp", "a")
    with pytest.raises(engine.RequestError):
        engine.constraint_options("yaml", json.dumps({}))
