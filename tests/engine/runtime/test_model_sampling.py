"""What a model's maker says about sampling is read from the file, and only as far as it is sane."""

import math

import pytest

import engine
from engine.runtime.model_sampling import MOST_CHARACTERS, model_sampling
from engine.sampling.samplers import SAMPLERS, SAMPLING_SETTINGS, sampler_order
from tests.make.architecture import read_recipe, write_model


def said(**values):
    return model_sampling({f"general.sampling.{name}": value for name, value in values.items()})


def test_every_value_has_the_name_that_requests_use():
    known = {
        **{"temp": 0.6, "top_k": 20, "top_p": 0.9, "min_p": 0.02, "xtc_probability": 0.5},
        **{"xtc_threshold": 0.2, "penalty_last_n": 128, "penalty_repeat": 1.1, "mirostat": 2},
        **{"mirostat_tau": 4.5, "mirostat_eta": 0.2, "sequence": "top_k;temperature"},
    }
    read = said(**known)
    assert read == {
        **{"temperature": 0.6, "top_k": 20, "top_p": 0.9, "min_p": 0.02, "xtc_probability": 0.5},
        **{"xtc_threshold": 0.2, "repeat_last_n": 128, "repeat_penalty": 1.1, "mirostat": 2},
        **{"mirostat_tau": 4.5, "mirostat_eta": 0.2, "samplers": ["top_k", "temperature"]},
    }
    params = engine.SamplingParams(**read)
    assert params.samplers == ("top_k", "temperature") and params.top_k == 20
    assert said() == {}


def test_a_number_may_be_written_as_text_and_an_endless_look_back_is_the_longest():
    assert said(temp="0.25", top_k="7") == {"temperature": 0.25, "top_k": 7}
    assert said(penalty_last_n=-1) == {"repeat_last_n": 4096}


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, True, None, "warm", "", "1" * 5000, [1.0], b"1", {}, "nan"],
)
def test_what_is_no_number_is_not_said(value):
    assert said(temp=value, top_k=value) == {}


def test_numbers_are_moved_to_what_the_sliders_can_show():
    rows = {p.key: p for sampler in SAMPLING_SETTINGS for p in sampler.parameters}
    names = {"temp": "temperature", "penalty_last_n": "repeat_last_n"}
    names |= {"penalty_repeat": "repeat_penalty"}
    keys = ["top_k", "top_p", "min_p", "xtc_probability", "xtc_threshold", "mirostat"]
    names |= {key: key for key in [*keys, "mirostat_tau", "mirostat_eta"]}
    for name, key in names.items():
        assert said(**{name: 1e300}) == {key: rows[key].max}
        low = rows[key].max if key == "repeat_last_n" else rows[key].min
        assert said(**{name: -1e300}) == {key: low}
        engine.SamplingParams(**said(**{name: 1e300}))


def test_the_order_knows_every_name_of_the_table_and_drops_others():
    for sampler in SAMPLERS.values():
        for alias in sampler.aliases if sampler.letter else ():
            assert said(sequence=alias)["samplers"] == list(sampler_order([alias]))
    assert said(sequence="top_k;nonsense;Top-K; temp")["samplers"] == ["top_k", "temperature"]
    assert said(sequence="nonsense") == {} and said(sequence=7) == {}
    long = "top_k;" + "x" * MOST_CHARACTERS + ";temperature"
    assert said(sequence=long) == {}


def test_it_is_read_with_the_rest_of_the_header(tmp_path):
    recipe = read_recipe("llama-dense")
    recipe["kv"]["general.sampling.temp"] = ["FLOAT32", 0.5]
    recipe["kv"]["general.sampling.top_k"] = ["INT32", -7]
    recipe["kv"]["general.sampling.top_p"] = ["ARRAY:FLOAT32", [0.1, 0.2]]
    info = engine.read_model_info(write_model(recipe, tmp_path / "model.gguf"))
    assert info.sampling == {"temperature": 0.5, "top_k": 0}
