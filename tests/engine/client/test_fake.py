"""FakeClient keeps the promises of the seam: order of events, cancel, failures, slots, closing."""

import gc

import pytest

import engine


def ask(client, **options):
    return client.submit(engine.CompletionRequest("hello", **options))


def test_events_come_in_order_and_the_stream_is_the_text():
    with engine.FakeClient(reply="one two three", n_prompt=10, n_batch=4) as client:
        events = list(ask(client))
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["PromptProgress"] * 4 + ["TextDelta"] * 3 + ["Finished"]
    assert [event.n_read for event in events[:4]] == [0, 4, 8, 10]
    assert "".join(event.text for event in events[4:-1]) == events[-1].text == "one two three"
    assert events[-1].stop_type == "eos"
    assert events[-1].timings.n_prompt == events[-1].timings.n_cached + events[-1].timings.n_read


def test_on_event_gets_the_same_events():
    seen = []
    with engine.FakeClient(reply="a b") as client:
        handle = ask(client, on_event=seen.append)
        assert handle.wait(10)
        with pytest.raises(engine.RequestError, match="on_event"):
            next(iter(handle))
    assert isinstance(seen[-1], engine.Finished)


def test_standing_still_until_advanced_and_cancelled_in_the_middle():
    with engine.FakeClient(reply="one two three", tokens_per_second=0, n_prompt=0) as client:
        handle = ask(client)
        events = iter(handle)
        client.advance(3)
        assert [type(next(events)).__name__ for _ in range(3)][-1] == "TextDelta"
        assert client.slots()[0].state == "generating"
        handle.cancel()
        last = next(events)
        assert (last.stop_type, last.text) == ("cancelled", "one two")
        assert list(events) == []
        assert handle.is_finished


def test_more_requests_than_slots_wait():
    with engine.FakeClient(n_slots=1, tokens_per_second=0) as client:
        first, second = ask(client), ask(client)
        client.advance(1)
        assert client.metrics() == engine.Metrics(requests_processing=1, requests_deferred=1)
        second.cancel()
        assert second.result().stop_type == "cancelled"
        first.cancel()
        assert first.result().stop_type == "cancelled"


def test_several_answers_of_one_request_are_told_apart():
    with engine.FakeClient(reply="x y") as client:
        events = list(ask(client, n=3))
    assert sorted(e.index for e in events if isinstance(e, engine.Finished)) == [0, 1, 2]


def test_failures_on_demand_reach_the_caller_as_their_class():
    with engine.FakeClient(reply="one two") as client:
        client.fail_next(engine.ContextFullError("The prompt is too long."), after_tokens=1)
        events = list(ask(client))
        assert isinstance(events[-2], engine.TextDelta)
        assert events[-1] == engine.Failed("context full", "The prompt is too long.")
        client.fail_next(engine.MachineError("No memory."))
        with pytest.raises(engine.MachineError, match="No memory"):
            ask(client).result()
        assert ask(client).result().text == "one two"


def test_a_failed_load_reaches_every_one_who_waits():
    error = engine.UnsupportedModelError("The architecture “x” is not supported.")
    with engine.FakeClient(load_error=error) as client:
        with pytest.raises(engine.UnsupportedModelError):
            client.wait_until_ready(10)
        assert client.state == "failed"
        with pytest.raises(engine.UnsupportedModelError):
            ask(client).result()


def test_closing_ends_what_runs_and_refuses_what_comes():
    client = engine.FakeClient(tokens_per_second=0)
    handle = ask(client)
    client.close()
    client.close()
    assert handle.result().stop_type == "cancelled"
    with pytest.raises(engine.InternalError, match="closed"):
        ask(client)


def test_a_dropped_handle_frees_its_slot():
    with engine.FakeClient(n_slots=1, tokens_per_second=0) as client:
        handle = ask(client)
        client.advance(1)
        del handle
        gc.collect()
        second = ask(client)
        client.advance(2)
        assert isinstance(next(iter(second)), engine.PromptProgress)


def test_update_is_checked_where_it_is_called():
    with engine.FakeClient(tokens_per_second=0) as client:
        handle = ask(client)
        handle.update(temperature=0.1, n_predict=5)
        with pytest.raises(engine.RequestError, match="temperature"):
            handle.update(temprature=1)
        with pytest.raises(engine.RequestError, match="running"):
            handle.update(prompt="other")
        with pytest.raises(engine.RequestError, match="between"):
            handle.update(n_predict=-7)


def test_a_listener_that_raises_is_gone(caplog):
    def broken(event):
        raise RuntimeError("the window was closed")

    with engine.FakeClient(n_slots=1, tokens_per_second=100) as client:
        assert ask(client, on_event=broken).wait(10)
        client.tokens_per_second = 1e6
        assert ask(client).result().stop_type == "eos"
    assert "given up" in caplog.text


def test_idle_slots_remember_and_are_saved_erased_and_restored(tmp_path):
    with engine.FakeClient(reply="one two", n_prompt=10, n_slots=2) as client:
        assert ask(client).result().id_slot == 0
        kept = client.slots()[0].n_tokens
        assert kept == 12 and client.slots()[0].state == "idle"
        assert client.save_slot(0, tmp_path / "a").n_tokens == kept
        assert client.erase_slot(0).n_tokens == kept and client.slots()[0].n_tokens == 0
        assert client.restore_slot(1, tmp_path / "a").n_tokens == kept
        assert client.slots()[1].n_tokens == kept
        (tmp_path / "a").write_text("nonsense")
        with pytest.raises(engine.StateFileError, match="no saved memory"):
            client.restore_slot(1, tmp_path / "a")
        assert client.slots()[1].n_tokens == kept
        with pytest.raises(engine.RequestError, match="no idle slot"):
            client.erase_slot(5)


def test_a_handle_knows_its_task(tmp_path):
    with engine.FakeClient(tokens_per_second=0) as client:
        first, second = ask(client), ask(client)
        client.advance(1)
        assert [slot.id_task for slot in client.slots()][:2] == [first.id_task, second.id_task]


def test_conversations_are_known_in_slots_and_files_and_found_again(tmp_path):
    told = [{"role": "user", "content": "Where does the river go to?"}]
    with engine.FakeClient(reply="To the sea.", snapshot_dir=tmp_path) as client:
        assert client.known_prefix(told).where == ""
        assert client.keep(told, tmp_path / "none.safetensors").result().path == ""
        client.submit(engine.CompletionRequest(told)).result()
        known = client.known_prefix(told)
        assert (known.where, known.n_tokens) == ("slot", known.n_prompt)
        told += [{"role": "assistant", "content": "To the sea."}]
        assert client.known_prefix(told).n_tokens == client.known_prefix(told).n_prompt
        kept = client.keep(told, tmp_path / "one.safetensors").result()
        assert kept.n_tokens > 0
    (tmp_path / "bad.safetensors").write_text("?")
    with engine.FakeClient(snapshot_dir=tmp_path) as client:
        assert list(client.skipped_files) == ["bad.safetensors"]
        assert client.known_prefix(told).where == "disk"
        client.discard(tmp_path / "one.safetensors")
        assert client.known_prefix(told).where == ""
        assert not (tmp_path / "one.safetensors").exists()


def test_questions_without_a_stream_have_plain_answers():
    with engine.FakeClient(reply="x") as client:
        decision = client.decide("?", range(1, 4))
        assert (decision.best, decision.options) == ("1", ("1", "2", "3"))
        assert 1 < decision.score < 2
        with pytest.raises(engine.RequestError):
            client.decide("?", ["only one"])
        assert [len(vector) for vector in client.embed(["a", "bcd"])] == [2, 2]
        ranked = client.rerank("a mill", ["a road", "the mill a mill", "nothing"], top_n=2)
        assert [each.index for each in ranked] == [1, 0]
        assert client.infill("a", "b", extra=[("f", "t")], n_predict=1).result().text == "x"


def test_the_fake_has_every_method_of_the_real_one():
    real = {name for name in dir(engine.EngineClient) if not name.startswith("_")} - {"over"}
    assert real <= set(dir(engine.FakeClient))
