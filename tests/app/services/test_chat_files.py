"""A chat saved with its memory goes on elsewhere with nothing read again, or says why not."""

import pytest

from tests.make import window as make

MODEL = "fake.gguf"


@pytest.fixture
def program(tmp_path, qapp, qtbot):
    """Start the program below the window in a folder of its own."""
    opened = []

    def begin(name, model=MODEL):
        where = make.services(tmp_path / name, make.Clients(n_slots=2))
        services = where.__enter__()
        opened.append(where)
        services.heard = []
        services.chat_files.said.connect(services.heard.append)
        if model:
            load(services, tmp_path / model, qtbot)
        return services

    yield begin
    for where in reversed(opened):
        where.__exit__(None, None, None)


def load(services, model, qtbot):
    model.touch()
    services.engine.load(model)
    qtbot.waitUntil(lambda: services.engine.state == "ready")


def saved(services, path, qtbot, question="Why is the sky blue?"):
    chat = services.chats.start(title="Sky")
    services.chats.ask(chat.id, question)
    qtbot.waitUntil(lambda: not services.replies.running)
    services.chat_files.save(chat.id, path)
    qtbot.waitUntil(lambda: bool(services.heard))
    return chat.id


def opened(services, path, qtbot):
    found = []
    services.chat_files.opened.connect(found.append)
    services.chat_files.open(path)
    qtbot.waitUntil(lambda: bool(found))
    return found[0]


def n_known(services, chat):
    branch = services.database.branch(chat, services.database.conversation(chat).leaf_id)
    known = services.engine.client.known_prefix(services.chats.prompt_of(branch[-1]))
    return known.where, known.n_tokens


def test_a_chat_goes_on_in_another_program(program, tmp_path, qtbot):
    here, path = program("here"), tmp_path / "sky.inglenook"
    chat = saved(here, path, qtbot)
    assert "with its memory of" in here.heard[0]
    there = program("there")
    copy = opened(there, path, qtbot)
    qtbot.waitUntil(lambda: bool(there.heard))
    assert "nothing read again" in there.heard[0]
    texts = [[m.text for m in s.database.branch(c)] for s, c in ((here, chat), (there, copy))]
    assert texts[0] == texts[1]
    where, n = n_known(there, copy)
    assert where == "disk" and n > 10
    assert there.slots.lamp(copy)[0] == "saved"
    qtbot.waitUntil(lambda: not list(there.paths.snapshots.glob(".chat-*")))


def test_without_a_model_the_memory_waits_for_it(program, tmp_path, qtbot):
    path = tmp_path / "sky.inglenook"
    saved(program("here"), path, qtbot)
    there = program("there", model="")
    copy = opened(there, path, qtbot)
    qtbot.waitUntil(lambda: there.slots.lamp(copy)[0] == "saved")
    load(there, tmp_path / MODEL, qtbot)
    assert n_known(there, copy)[0] == "disk"


def test_a_model_that_is_being_loaded_takes_the_memory_it_finds_waiting(program, tmp_path, qtbot):
    from engine.memory.state_file import sweep_unfinished

    path = tmp_path / "sky.inglenook"
    saved(program("here"), path, qtbot)
    there = program("there", model="")
    there.engine.state = "loading"
    copy = opened(there, path, qtbot)
    qtbot.waitUntil(lambda: bool(list(there.paths.snapshots.glob(".chat-*"))))
    sweep_unfinished(there.paths.snapshots)  # as an engine does that begins
    there.engine.state = "empty"
    load(there, tmp_path / MODEL, qtbot)
    qtbot.waitUntil(lambda: bool(there.heard))
    assert "nothing read again" in there.heard[0]
    assert n_known(there, copy)[0] == "disk"


def test_a_chat_with_the_longest_name_is_saved(program, tmp_path, qtbot):
    here, path = program("here"), tmp_path / ("x" * 240 + ".inglenook")
    saved(here, path, qtbot)
    assert "with its memory of" in here.heard[0]
    qtbot.waitUntil(lambda: not list(here.paths.snapshots.glob(".chat-*")))


def test_nothing_is_left_where_the_memory_could_not_be_written(
    program, tmp_path, qtbot, monkeypatch
):
    here = program("here")
    from concurrent.futures import Future

    from engine import EngineError

    def refuse(_prompt, _path):
        done = Future()
        done.set_exception(EngineError("The disk is full."))
        return done

    chat = saved(here, tmp_path / "a.inglenook", qtbot)
    here.heard.clear()
    monkeypatch.setattr(here.engine.client, "export_memory", refuse)
    here.chat_files.save(chat, tmp_path / "b.inglenook")
    qtbot.waitUntil(lambda: bool(here.heard))
    assert here.heard == ["The disk is full."]
    assert not (tmp_path / "b.inglenook").exists()
    qtbot.waitUntil(lambda: not list(here.paths.snapshots.glob(".chat-*")))


def test_a_memory_that_does_not_fit_is_said_and_the_chat_is_there(
    program, tmp_path, qtbot, monkeypatch
):
    path = tmp_path / "sky.inglenook"
    saved(program("here"), path, qtbot)
    there = program("there")
    from engine import EngineError

    def refuse(_path, _kept):
        raise EngineError("It was made with another model.")

    monkeypatch.setattr(there.engine.client._memory, "adopt", refuse)
    copy = opened(there, path, qtbot)
    qtbot.waitUntil(lambda: bool(there.heard))
    assert there.heard == ["The chat must be read again: It was made with another model."]
    assert len(there.database.branch(copy)) == 2
    qtbot.waitUntil(lambda: not list(there.paths.snapshots.iterdir()))


def test_a_chat_that_nobody_remembers_is_saved_without(program, tmp_path, qtbot):
    here, path = program("here", model=""), tmp_path / "old.inglenook"
    chat = here.chats.start(title="Old")
    here.chat_files.save(chat.id, path)
    qtbot.waitUntil(lambda: bool(here.heard))
    assert "without memory" in here.heard[0]
    assert here.database.conversation(opened(here, path, qtbot)).title == "Old"


def test_another_file_changes_nothing(program, tmp_path, qtbot):
    here = program("here", model="")
    (tmp_path / "x.inglenook").write_bytes(b"PK\x03\x04 nothing")
    here.chat_files.open(tmp_path / "x.inglenook")
    qtbot.waitUntil(lambda: bool(here.heard))
    assert "no chat that was saved here" in here.heard[0]
    assert here.database.conversations() == []
