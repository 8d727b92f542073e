"""The Info of an answer: every value that was used, and where one changed."""

import engine
from app.services.figures import one_line, rows
from app.services.sampling import used


def test_info_lists_every_value_the_limits_and_each_change():
    request = {"params": {"temperature": 0.3}, "grammar": 'root ::= "a"\n', "n_predict": 5}
    record = used(request) | {
        "seed": 41,
        "changes": [{"at": 7, "values": {"top_k": 3, "samplers": ["top_k", "temperature"]}}],
    }
    told = dict(rows(record))
    names = set(engine.SamplingParams().__dataclass_fields__) - {"seed"}
    assert names <= set(told) and told["Seed"] == "41"
    assert (told["temperature"], told["top_p"]) == ("0.3", "0.95")
    assert told["samplers"].startswith("penalties, dry, top_n_sigma")
    assert (told["grammar"], told["n_predict"]) == ('root ::= "a"', "5")
    assert told["Changed at token 7"] == "top_k = 3, samplers = top_k, temperature"


def test_values_are_one_short_line():
    assert one_line(["\n", ":"]) == "'\\n', :" and one_line([]) == "–" and one_line("") == "–"
    assert len(one_line("word " * 100)) == 60


def test_values_the_engine_refuses_are_kept_as_they_were_asked_for():
    assert used({"params": {"no such": 1}})["sampling"] == {"no such": 1}
