"""Running answers: nothing lost, nothing out of order, on the disk every second."""

import time

import pytest

import engine
from app.services import reply as module
from app.services.figures import SpeedMeter
from tests.make import window as make


@pytest.fixture
def clients():
    return make.Clients(tokens_per_second=0)


@pytest.fixture
def services(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        yield made


def ask(services, text="Why?"):
    chat = services.chats.start()
    services.chats.ask(chat.id, text)
    return chat.id, services.replies.running[chat.id].message.id


def test_the_question_is_on_the_disk_before_the_engine_hears_it(services):
    chat_id, answer_id = ask(services)
    roles = [(m.role, m.text, m.state) for m in services.database.branch(chat_id)]
    assert roles == [("user", "Why?", "finished"), ("assistant", "", "running")]
    assert services.database.conversation(chat_id).title == "Why?"


def test_pieces_arrive_whole_and_in_order_in_one_signal_per_frame(services, clients, qtbot):
    chat_id, answer_id = ask(services)
    came, measured = [], []
    services.replies.text_came.connect(lambda _c, _m, text: came.append(text))
    services.replies.measured.connect(lambda _c, _m, n, _r: measured.append(n))
    clients.last.advance(12)
    services.replies.drain()
    assert len(came) == 1 and measured[-1] > 1
    clients.last.advance(200)
    qtbot.waitUntil(lambda: not services.replies.running)
    message = services.database.message(answer_id)
    assert "".join(came) == message.text == engine.FakeClient.__init__.__kwdefaults__["reply"]
    assert message.state == "finished" and message.record["stop_type"] == "eos"
    timings = message.record["timings"]
    assert timings["n_prompt"] == timings["n_cached"] + timings["n_read"]


def test_a_running_answer_is_committed_every_second(services, clients, monkeypatch):
    monkeypatch.setattr(module, "COMMIT_S", 0.0)
    _, answer_id = ask(services)
    clients.last.advance(10)
    services.replies.drain()
    stored = services.database.message(answer_id)
    assert stored.text and stored.state == "running"


def test_stop_keeps_what_came(services, clients, qtbot):
    chat_id, answer_id = ask(services)
    clients.last.advance(8)
    services.replies.stop(chat_id)
    services.replies.stop(chat_id)
    qtbot.waitUntil(lambda: not services.replies.running)
    message = services.database.message(answer_id)
    assert message.state == "cancelled" and message.text


def test_a_failure_is_stored_with_its_sentence_and_what_came(services, clients, qtbot):
    clients.last.fail_next(engine.MachineError("The memory is full: close a program."), 3)
    _, answer_id = ask(services)
    clients.last.advance(30)
    qtbot.waitUntil(lambda: not services.replies.running)
    message = services.database.message(answer_id)
    assert message.state == "failed" and message.text
    assert message.record["error"]["message"] == "The memory is full: close a program."


def test_a_request_that_cannot_be_made_fails_in_words(services, qtbot):
    chat = services.chats.start(params={"sampling": {"temprature": 1.0}})
    services.chats.ask(chat.id, "Why?")
    qtbot.waitUntil(lambda: not services.replies.running)
    answer = services.database.branch(chat.id)[-1]
    assert answer.state == "failed" and "temperature" in answer.record["error"]["message"]


def test_a_changed_value_reaches_the_running_answer_and_its_record(services, clients, qtbot):
    chat_id, answer_id = ask(services)
    clients.last.advance(6)
    services.replies.drain()
    services.chats.change_sampling(chat_id, {"temperature": 0.1})
    clients.last.advance(200)
    qtbot.waitUntil(lambda: not services.replies.running)
    changes = services.database.message(answer_id).record["changes"]
    assert changes[0]["values"] == {"temperature": 0.1} and changes[0]["at"] > 0
    assert services.database.conversation(chat_id).params["sampling"] == {"temperature": 0.1}


def test_two_conversations_run_side_by_side(services, clients, qtbot):
    one, first = ask(services, "One?")
    two, second = ask(services, "Two?")
    assert services.replies.is_running(one) and services.replies.is_running(two)
    clients.last.advance(8)
    services.replies.stop(one)
    clients.last.advance(200)
    qtbot.waitUntil(lambda: not services.replies.running)
    states = [services.database.message(m).state for m in (first, second)]
    assert states == ["cancelled", "finished"]


def test_questions_wait_for_a_model_that_still_loads(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        chat = made.chats.start()
        made.chats.ask(chat.id, "Why?")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        qtbot.waitUntil(lambda: made.replies.running[chat.id].handle is not None)
        clients.last.advance(200)
        qtbot.waitUntil(lambda: not made.replies.running)
        assert made.database.branch(chat.id)[-1].state == "finished"


def test_questions_to_a_model_that_fails_to_load_say_why(tmp_path, qapp, qtbot):
    broken = make.Clients(load_error=engine.ModelFileError("The file is cut short: 3.1 of 4.7 GB."))
    with make.services(tmp_path, broken) as made:
        made.engine.load(tmp_path / "fake.gguf")
        chat = made.chats.start()
        made.chats.ask(chat.id, "Why?")
        qtbot.waitUntil(lambda: not made.replies.running)
        answer = made.database.branch(chat.id)[-1]
        assert "cut short" in answer.record["error"]["message"]


def test_closing_stores_what_came(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        chat_id, answer_id = ask(made)
        clients.last.advance(8)
    with make.services(tmp_path, clients) as again:
        message = again.database.message(answer_id)
        assert message.state == "cancelled" and message.text


def test_continue_goes_on_with_the_same_message(services, clients, qtbot):
    chat_id, answer_id = ask(services)
    clients.last.advance(8)
    services.replies.stop(chat_id)
    qtbot.waitUntil(lambda: not services.replies.running)
    half = services.database.message(answer_id)
    services.chats.resume(half)
    clients.last.advance(200)
    qtbot.waitUntil(lambda: not services.replies.running)
    whole = services.database.message(answer_id)
    assert whole.text.startswith(half.text) and len(whole.text) > len(half.text)
    assert clients.last.requests[-1].prompt[-1] == {"role": "assistant", "content": half.text}


def test_a_speed_needs_some_time():
    meter = SpeedMeter()
    meter.add(1, now=10.0)
    assert meter.rate() == 0
    for i in range(1, 21):
        meter.add(1, now=10.0 + i * 0.1)
    assert meter.rate() == pytest.approx(10, rel=0.05)
    assert meter.n_tokens == 21
    assert time.monotonic() > 0


def test_another_model_answers_what_the_last_one_had_not_begun(services, clients, tmp_path, qtbot):
    chat_id, answer_id = ask(services)
    del clients.options["tokens_per_second"]
    services.engine.load(tmp_path / "other.gguf")
    services.engine.load(tmp_path / "third.gguf")
    qtbot.waitUntil(lambda: not services.replies.running)
    message = services.database.message(answer_id)
    assert message.state == "finished" and message.text
    assert message.record["model"] == "third"
    assert len(services.database.branch(chat_id)) == 2


def test_an_answer_cut_off_by_another_model_says_so(services, clients, tmp_path, qtbot):
    _, answer_id = ask(services)
    clients.last.advance(10)
    services.replies.drain()
    mark = services.engine.mark
    services.engine.load(tmp_path / "other.gguf")
    qtbot.waitUntil(lambda: not services.replies.running)
    message = services.database.message(answer_id)
    assert message.state == "cancelled" and message.text
    assert message.record["cut_by"] == "model"
    assert (message.record["model"], message.record["mark"]) == ("fake", mark)


def test_what_was_stopped_while_the_model_changed_stays_stopped(services, tmp_path, qtbot):
    chat_id, answer_id = ask(services)
    services.engine.load(tmp_path / "other.gguf")
    services.replies.stop(chat_id)
    qtbot.waitUntil(lambda: services.engine.state == "ready")
    assert services.database.message(answer_id).state == "cancelled"
    assert not services.replies.running
