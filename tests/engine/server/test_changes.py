"""What changed while an answer ran is told with the token where it did, and can be planned."""

import pytest

import engine
from tests.engine.server.test_many import chaotic, client_of

HOT = {"temperature": 50.0, "top_k": 0, "min_p": 0, "top_p": 1, "seed": 1, "n_predict": 40}


def text_of(**options):
    client, _, gate = client_of(chaotic(3), n_slots=1)
    gate.open()
    with client:
        return client.submit(engine.CompletionRequest([256, 7], **options)).result()


def changed_live():
    """Return an answer that was made colder after some tokens, and shorter later."""
    client, _, gate = client_of(chaotic(3), n_slots=1)
    with client:
        request = engine.CompletionRequest([256, 7], **HOT)
        handle = client.submit(request)
        gate.step(4)
        handle.update(temperature=0, top_k=9)
        gate.step(3)
        handle.update(n_predict=12)
        handle.update(temperature=60.0)
        gate.open()
        return handle.result()


def test_the_end_tells_where_each_change_took_hold():
    last = changed_live()
    (first, cold), (second, hot) = last.changes
    assert cold == {"temperature": 0, "top_k": 9}
    assert hot == {"n_predict": 12, "temperature": 60.0}
    assert 0 < first < second < len(last.tokens) == 12
    assert text_of(**HOT).changes == ()


def test_planned_changes_say_the_same_again():
    last = changed_live()
    again = text_of(**HOT, changes=last.changes)
    assert again.tokens == last.tokens and again.changes == last.changes
    assert text_of(**HOT).tokens[:12] != last.tokens
    early = tuple((i, values) for i, (_, values) in enumerate(last.changes))
    assert text_of(**HOT, changes=early).tokens != last.tokens


def test_every_answer_of_a_request_follows_the_plan():
    client, _, gate = client_of(chaotic(3), n_slots=2)
    gate.open()
    with client:
        plan = ((2, {"n_predict": 5}),)
        handle = client.submit(engine.CompletionRequest([256, 7], n=2, seed=1, changes=plan))
        ends = [event for event in handle if isinstance(event, engine.Finished)]
    assert [len(end.tokens) for end in ends] == [5, 5]
    assert [end.changes for end in ends] == [plan, plan]


@pytest.mark.parametrize(
    "plan",
    [
        7,
        "abc",
        [(1,)],
        [(-1, {"top_k": 1})],
        [(1.5, {"top_k": 1})],
        [(True, {"top_k": 1})],
        [(1, ["top_k"])],
        [(1, {"temprature": 1})],
        [(1, {"prompt": "x"})],
        [(1, {"top_k": "many"})],
        [(3, {"top_k": 1}), (2, {"top_k": 1})],
    ],
)
def test_an_impossible_plan_is_refused(plan):
    with pytest.raises(engine.RequestError):
        engine.CompletionRequest("x", changes=plan)


def test_the_scripted_engine_tells_and_follows_changes_too():
    with engine.FakeClient(reply="one two three four five", tokens_per_second=0) as client:
        handle = client.submit(engine.CompletionRequest("x", changes=[(1, {"top_k": 3})]))
        client.advance(6)
        handle.update(temperature=0.1)
        client.advance(30)
        last = handle.result()
    assert last.changes[0] == (1, {"top_k": 3})
    assert last.changes[1][1] == {"temperature": 0.1} and last.changes[1][0] > 1
