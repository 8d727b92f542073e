"""Which conversation is in which slot, in words for the lamps; slots saved, restored and erased."""

import pytest

from app.services.slots import SUFFIX, SavedMemory, line_words
from tests.make import window as make


@pytest.fixture
def clients():
    return make.Clients(tokens_per_second=0, n_slots=2, n_prompt=16, n_batch=8)


@pytest.fixture
def services(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        yield made


def ask(services, text="Why?"):
    chat = services.chats.start()
    services.chats.ask(chat.id, text)
    return chat.id


def finish(services, clients, qtbot):
    clients.last.advance(200)
    qtbot.waitUntil(lambda: not services.replies.running)


def test_lamps_say_what_happens_with_numbers(services, clients, qtbot):
    first, second, third = (ask(services, f"Question {i}") for i in range(3))
    assert services.slots.lamp(first) == ("running", "waiting for the model")
    clients.last.advance(2)
    services.replies.drain()
    assert services.slots.lamp(first) == ("running", "reading · 8 of 16 tokens")
    assert services.slots.lamp(third) == ("running", "next in line")
    clients.last.advance(6)
    services.replies.drain()
    state, words = services.slots.lamp(second)
    assert state == "running" and words.startswith("writing · ")
    finish(services, clients, qtbot)
    state, words = services.slots.lamp(second)
    n_tokens = services.slots.of_conversation(second).n_tokens
    assert (state, words) == ("ready", f"ready · {n_tokens} tokens · 1 MB") and n_tokens > 16
    assert services.slots.lamp(999)[0] == "cold"


def test_a_running_conversation_is_seen_in_its_slot(services, clients):
    ask(services)
    second = ask(services)
    clients.last.advance(6)
    services.replies.drain()
    slot = services.slots.all()[1]
    assert slot.conversation_id == second and slot.state == "generating" and not slot.is_idle


def test_the_one_that_came_later_has_the_slot(services, clients, qtbot):
    chats = [ask(services) for _ in range(2)]
    finish(services, clients, qtbot)
    third = ask(services)
    finish(services, clients, qtbot)
    lamps = [services.slots.lamp(chat)[0] for chat in (*chats, third)]
    assert sorted(lamps) == ["cold", "ready", "ready"] and lamps[2] == "ready"


def test_memory_on_the_disk_has_its_lamp(services, monkeypatch):
    saved = SavedMemory(12_480, 310_000_000)
    monkeypatch.setattr(services.slots, "saved_memory", lambda _: saved)
    assert services.slots.lamp(7) == ("saved", "on disk · 12,480 tokens · 310 MB")


def test_save_erase_and_restore(services, clients, qtbot, tmp_path):
    chat = ask(services)
    finish(services, clients, qtbot)
    slot = services.slots.of_conversation(chat)
    with qtbot.waitSignal(services.slots.done) as said:
        services.slots.save(slot.id, tmp_path / "größe 模型")
    file = tmp_path / f"größe 模型{SUFFIX}"
    assert file.exists() and f"{slot.n_tokens} tokens" in said.args[0]
    with qtbot.waitSignal(services.slots.done):
        services.slots.erase(slot.id)
    assert services.slots.lamp(chat)[0] == "cold"
    with qtbot.waitSignal(services.slots.done):
        services.slots.restore(slot.id, file)
    assert services.slots.all()[slot.id].n_tokens == slot.n_tokens
    assert services.slots.lamp(chat)[0] == "ready"


def test_a_memory_that_belongs_to_no_chat_lights_none(services, clients, qtbot, tmp_path):
    chat, other = ask(services, "Why?"), ask(services, "Who?")
    finish(services, clients, qtbot)
    slot, file = services.slots.of_conversation(chat), tmp_path / "a.safetensors"
    with qtbot.waitSignal(services.slots.done):
        services.slots.save(slot.id, file)
    with qtbot.waitSignal(services.slots.done):
        services.slots.erase(slot.id)
    services.chats.trash(chat)
    with qtbot.waitSignal(services.slots.done):
        services.slots.restore(slot.id, file)
    assert services.slots.all()[slot.id].conversation_id == 0
    assert services.slots.lamp(other)[0] == "ready"


def test_a_file_that_does_not_fit_is_refused_in_words(services, clients, qtbot, tmp_path):
    chat = ask(services)
    finish(services, clients, qtbot)
    slot = services.slots.of_conversation(chat)
    (tmp_path / "bad.safetensors").write_text("nonsense")
    with qtbot.waitSignal(services.slots.failed) as said:
        services.slots.restore(slot.id, tmp_path / "bad.safetensors")
    assert "bad.safetensors" in said.args[0]
    assert services.slots.of_conversation(chat) == slot


def test_without_a_model_there_is_nothing(services, clients, qtbot):
    ask(services)
    finish(services, clients, qtbot)
    services.engine.unload()
    assert services.slots.all() == [] and services.slots.lamp(1)[0] == "cold"
    with qtbot.waitSignal(services.slots.failed):
        services.slots.erase(0)


def test_places_in_words():
    assert [line_words(n) for n in (1, 2, 3, 4)] == [
        "next in line",
        "2nd in line",
        "3rd in line",
        "4th in line",
    ]
