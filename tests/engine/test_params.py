"""Settings objects refuse what they do not know and move soft values to their edge."""

import math

import pytest

from engine.errors import RequestError
from engine.params import RANDOM_SEED, CompletionRequest, ContextParams, SamplingParams


@pytest.mark.parametrize(
    ("cls", "options", "says"),
    [
        (SamplingParams, {"temprature": 1}, "“temperature”"),
        (SamplingParams, {"top_k": 1.5}, "whole number"),
        (SamplingParams, {"top_p": math.nan}, "finite"),
        (SamplingParams, {"top_p": "0.5"}, "finite number"),
        (SamplingParams, {"ignore_eos": 1}, "true or false"),
        (SamplingParams, {"repeat_penalty": 0}, "above 0"),
        (SamplingParams, {"repeat_last_n": -1}, "between 0"),
        (SamplingParams, {"dry_sequence_breakers": []}, "at least one"),
        (SamplingParams, {"seed": 2**32}, "between"),
        (ContextParams, {"type_k": "q8"}, "“q8_0”"),
        (ContextParams, {"n_ctx": -1}, "between 0"),
        (CompletionRequest, {"prompt": 7}, "prompt"),
        (CompletionRequest, {"prompt": [1, "a"]}, "prompt"),
        (CompletionRequest, {"n_predikt": 7}, "“n_predict”"),
        (CompletionRequest, {"n_predict": -2}, "between -1"),
        (CompletionRequest, {"stop": [1]}, "list of texts"),
        (CompletionRequest, {"params": 3}, "SamplingParams"),
        (CompletionRequest, {"on_event": 3}, "function"),
        (CompletionRequest, {"n": 0}, "between 1"),
    ],
)
def test_wrong_options_are_refused_with_a_reason(cls, options, says):
    with pytest.raises(RequestError, match=says):
        cls(**options)


def test_soft_ranges_clamp_and_none_means_not_given():
    params = SamplingParams(top_k=-5, top_p=2, temperature=-1, mirostat=9, min_p=None, seed=-1)
    assert (params.top_k, params.top_p, params.temperature, params.mirostat) == (0, 1.0, 0.0, 2)
    assert (params.min_p, params.seed) == (0.05, RANDOM_SEED)


def test_logit_bias_in_its_three_shapes():
    expected = ((15, -math.inf), ("no", 1.5))
    assert SamplingParams(logit_bias=[[15, False], ["no", 1.5], [1], 3]).logit_bias == expected
    assert SamplingParams(logit_bias={"15": False, "no": 1.5}).logit_bias == expected
    assert SamplingParams(logit_bias={15: False, "no": 1.5}).logit_bias == expected


def test_a_request_takes_sampling_names_directly_and_they_win():
    request = CompletionRequest("x", params={"temperature": 0.5, "top_k": 3}, temperature=0.1)
    assert request.params == SamplingParams(temperature=0.1, top_k=3)


def test_prompts_are_text_ids_or_messages():
    assert CompletionRequest([1, 2]).prompt == (1, 2)
    assert CompletionRequest([{"role": "user", "content": "x"}]).prompt[0]["role"] == "user"
    assert CompletionRequest("x", stop="END").stop == ("END",)
    assert CompletionRequest("x", stop=["", "a"]).stop == ("a",)


def test_replace_checks_again():
    request = CompletionRequest("x", n_predict=5)
    assert request.replace(n_predict=6).n_predict == 6
    with pytest.raises(RequestError):
        request.replace(n_predict=-9)
