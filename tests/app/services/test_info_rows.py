"""The Info of an answer: every value that was used, whence it came, and where one changed."""

from dataclasses import fields

import pytest

import engine
from app.services.figures import one_line, rows
from app.services.sampling import NOT_TOLD, used
from tests.make import window as make


def names_of(cls):
    return {field.name for field in fields(cls)}


def test_info_lists_every_value_that_a_request_or_a_context_knows():
    """A new sampler, limit or option of the engine appears by itself, or this fails."""
    told = dict(rows(used({}, {}) | {"seed": 41}))
    wanted = names_of(engine.SamplingParams) | names_of(engine.CompletionRequest)
    wanted |= names_of(engine.ContextParams)
    wanted |= {p.key for sampler in engine.SAMPLING_SETTINGS for p in sampler.parameters}
    assert wanted - set(told) == NOT_TOLD
    assert NOT_TOLD < wanted and told["Seed"] == "41"


def test_values_limits_sources_and_each_change_are_told():
    request = {
        "params": {"temperature": 0.3},
        "grammar": 'root ::= "a"\n',
        "n_predict": 5,
        "stop": ["END", "\n\n"],
        "reasoning_budget": 128,
    }
    record = used(request, {"type_k": "q8_0", "n_ctx": 2048, "snapshot_dir": "x"}) | {
        "seed": 41,
        "sources": {"temperature": ["chat", ""], "top_p": ["model", "Precise"]},
        "system": "Be brief.",
        "changes": [{"at": 7, "values": {"top_k": 3, "samplers": ["top_k", "temperature"]}}],
    }
    told = dict(rows(record))
    assert told["temperature"] == "0.3 · this chat"
    assert told["top_p"] == "0.95 · Precise, with this model"
    assert told["min_p"] == "0.05"
    assert told["samplers"].startswith("penalties, dry, top_n_sigma")
    assert (told["grammar"], told["n_predict"]) == ('root ::= "a"', "5")
    assert (told["stop"], told["reasoning_budget"]) == ("END, '\\n\\n'", "128")
    assert (told["type_k"], told["type_v"], told["n_ctx"]) == ("q8_0", "f16", "2048")
    assert told["System prompt"] == "Be brief."
    assert told["Changed at token 7"] == "top_k = 3, samplers = top_k, temperature"
    assert (told["typical_p"], told["top_n_sigma"], told["xtc_threshold"]) == ("1", "-1", "0.1")
    assert [name for name, value in told.items() if not value][:2] == ["Sampling", "Limits"]
    assert (told["regex"], told["t_max_predict_ms"]) == ("–", "no limit")


def test_an_answer_in_several_runs_tells_each_of_them():
    first = used({"params": {"temperature": 0.3}}, {}) | {
        **{"seed": 1, "n_run": 9, "stop_type": "cancelled"},
        "changes": [{"at": 4, "values": {"top_k": 3}}],
    }
    last = used({"params": {"temperature": 0.9}}, {}) | {
        **{"seed": 2, "n_run": 5, "stop_type": "eos", "runs": [first]},
        "changes": [{"at": 2, "values": {"reasoning_budget": 0}}],
    }
    told = rows(last)
    assert [value for name, value in told if name == "temperature"] == ["0.9", "0.3"]
    assert [value for name, value in told if name == "Seed"] == ["2", "1"]
    names = [name for name, _ in told]
    assert "Changed at token 11" in names and "Changed at token 4" in names
    assert ("Went on at token 9", "") in told and ("Began with", "") in told


def test_values_are_one_short_line():
    assert one_line(["\n", ":"]) == "'\\n', :" and one_line([]) == "–" and one_line("") == "–"
    assert len(one_line("word " * 100, 60)) == 60 and len(one_line("word " * 100)) == 499


def test_values_the_engine_refuses_are_kept_as_they_were_asked_for():
    assert used({"params": {"no such": 1}}, {})["sampling"] == {"no such": 1}
    assert used({"n_predict": "many"}, {"n_ctx": "all"})["limits"] == {"n_predict": "many"}


@pytest.mark.usefixtures("qapp")
def test_the_record_of_an_answer_has_all_of_it(tmp_path, qtbot):
    with make.services(tmp_path, make.Clients()) as services:
        services.engine.load(tmp_path / "fake.gguf", n_ctx=512, type_k="q8_0")
        qtbot.waitUntil(lambda: services.engine.state == "ready")
        sources = {"temperature": ["everywhere", "Precise"]}
        params = {"sampling": {"temperature": 0.2}, "sources": sources, "system": "Be brief."}
        chat = services.chats.start(params={**params, "stop": ["END"], "reasoning_budget": 9})
        services.chats.ask(chat.id, "Hello")
        qtbot.waitUntil(lambda: not services.replies.running)
        record = services.database.branch(chat.id)[-1].record
        told = dict(rows(record))
    assert told["temperature"] == "0.2 · Precise, everywhere"
    assert (told["stop"], told["reasoning_budget"], told["type_k"]) == ("END", "9", "q8_0")
    assert told["System prompt"] == "Be brief." and record["keeps_reasoning"] is False
    wanted = names_of(engine.SamplingParams) | names_of(engine.ContextParams)
    assert wanted - set(told) == {"seed", "n_seq_max", "cache_ram", "embeddings"}
    assert told["n_ctx"] == "4096"  # what the engine made of it
