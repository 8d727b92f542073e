"""Conversations kept on the disk: made after answers, found after a restart, gone with the chat."""

import os
import time
from concurrent.futures import Future

import pytest

from app.services import memories as room
from app.services.engine_service import file_mark
from app.services.keeping import saving_words
from app.services.kept_files import INDEX, Kept, KeptFiles
from tests.make import window as make

MODEL = "fake.gguf"


@pytest.fixture
def start(tmp_path, qapp, qtbot):
    """Start the program below the window on one folder, with a model unless told otherwise."""

    def begin(model=MODEL, **options):
        clients = make.Clients(n_slots=2, **options)
        return _Run(tmp_path, clients, qtbot, model)

    return begin


class _Run:
    """One run of the program."""

    def __init__(self, folder, clients, qtbot, model):
        self.folder, self.clients, self.qtbot, self.model = folder, clients, qtbot, model
        self.said = []

    def __enter__(self):
        self._opened = make.services(self.folder, self.clients)
        self.services = self._opened.__enter__()
        self.memories = self.services.memories
        self.memories.said.connect(self.said.append)
        if self.model:
            self.services.engine.load(self.folder / self.model)
            self.qtbot.waitUntil(lambda: self.services.engine.state == "ready")
        return self

    def __exit__(self, *what):
        self._opened.__exit__(*what)

    def ask(self, text="Why is the sky blue?", chat=0):
        chat = chat or self.services.chats.start().id
        self.services.chats.ask(chat, text)
        self.qtbot.waitUntil(lambda: not self.services.replies.running)
        return chat

    def kept(self, text="Why is the sky blue?", chat=0):
        chat = self.ask(text, chat)
        assert self.memories.hurry() == 0
        self.memories._until = float("inf")
        return chat

    def files(self):
        return sorted(path.name for path in self.services.paths.snapshots.glob("*.safetensors"))


def test_an_answer_is_kept_after_a_moment_and_found_after_a_restart(start, monkeypatch):
    monkeypatch.setattr(room, "QUIET_MS", 20)
    with start() as run:
        chat = run.ask()
        run.qtbot.waitUntil(lambda: run.memories.saved(chat) is not None)
        assert run.services.slots.lamp(chat)[0] == "ready"
        n_tokens = run.memories.saved(chat).n_tokens
        assert n_tokens > 10 and len(run.files()) == 1
    with start(model="") as run:
        state, words = run.services.slots.lamp(chat)
        assert state == "saved" and words.startswith(f"on disk · {n_tokens} tokens · ")
        assert run.services.slots.lamps()(chat) == "saved"
        run.services.engine.load(run.folder / MODEL)
        run.qtbot.waitUntil(lambda: run.services.engine.state == "ready")
        assert run.services.slots.lamp(chat)[0] == "saved"
        prompt = run.services.chats.prompt_of(run.services.database.branch(chat)[-1])
        known = run.clients.last.known_prefix(prompt)
        assert known.where == "disk" and known.n_tokens == n_tokens


def test_another_model_does_not_claim_the_file(start):
    with start() as run:
        chat = run.kept()
    with start(model="other.gguf") as run:
        assert run.services.slots.lamp(chat)[0] == "cold"
        run.kept("And now?", chat)
        assert len(run.files()) == 2


def test_what_was_not_kept_yet_is_kept_at_the_end_and_before_another_model(start):
    with start() as run:
        chat = run.ask()
        assert run.files() == [] and run.memories.n_unsaved() == 1
    with start() as run:
        assert run.memories.saved(chat) is not None
        other = run.ask("And the sea?")
        run.services.engine.unload()
        run.qtbot.waitUntil(lambda: run.memories.saved(other) is not None)


def test_the_trash_takes_the_file_and_undo_brings_it_back(start):
    with start() as run:
        chat = run.kept()
        run.services.chats.trash(chat)
        run.qtbot.waitUntil(lambda: run.files() == [])
        assert run.memories.saved(chat) is None
        run.services.chats.restore(chat)
        run.memories.hurry()
        run.qtbot.waitUntil(lambda: run.memories.saved(chat) is not None)
        assert len(run.files()) == 1


def test_nothing_of_a_deleted_message_stays_in_the_file(start):
    with start() as run:
        chat = run.kept()
        run.kept("Is it the ozone?", chat)
        (name,) = run.files()
        file = run.services.paths.snapshots / name
        assert "ozone" in file.read_text()
        _, answer, question, _ = run.services.database.branch(chat)
        run.services.chats.trash_message(question)
        run.memories.hurry()
        run.qtbot.waitUntil(lambda: run.memories.saved(chat) is not None)
        assert "ozone" not in file.read_text() and "sky" in file.read_text()


def test_a_chat_deleted_while_it_is_written_leaves_nothing(start, monkeypatch):
    with start() as run:
        chat = run.ask()
        client, late = run.clients.last, Future()
        keep = client.keep
        monkeypatch.setattr(client, "keep", lambda prompt, path: (keep(prompt, path), late)[1])
        run.memories._next()
        run.services.chats.trash(chat)
        late.set_result(type("Done", (), {"n_tokens": 30, "elapsed_ms": 1.0})())
        run.qtbot.waitUntil(lambda: run.memories.n_unsaved() == 0)
        run.qtbot.waitUntil(lambda: run.files() == [])
        assert run.memories.saved(chat) is None


def test_files_of_chats_that_are_gone_are_deleted_at_the_start(start):
    with start() as run:
        run.kept()
        stray = run.services.paths.snapshots / f"chat-77-{'0' * 16}.safetensors"
        stray.write_text("left over")
        other = run.services.paths.snapshots / "mine.safetensors"
        other.write_text("not ours")
    with start(model="") as run:
        run.qtbot.waitUntil(lambda: not stray.exists())
        assert len(run.files()) == 2 and other.exists()


def test_the_oldest_go_when_the_limit_is_reached(start, monkeypatch):
    with start() as run:
        first = run.kept("The first question of all")
        n_bytes = run.memories.saved(first).n_bytes
        monkeypatch.setattr(room, "GB", n_bytes * 2.5 / run.services.settings["memory_gb"])
        chats = [first, *(run.kept(f"The {word} question of all") for word in ("other", "third"))]
        assert [run.memories.saved(chat) is not None for chat in chats] == [False, True, True]
        run.qtbot.waitUntil(lambda: len(run.files()) == 2)


def test_a_file_that_does_not_fit_is_not_used_and_says_why_once(start, monkeypatch):
    monkeypatch.setattr(room, "SCAN_MS", 10)
    with start() as run:
        chat = run.kept("Why is the sky blue?")
        file = run.services.paths.snapshots / run.files()[0]
    file.write_text("x" * file.stat().st_size)
    with start() as run:
        run.qtbot.waitUntil(lambda: bool(run.said))
        assert "“Why is the sky blue?” is not used" in run.said[0]
        assert run.services.slots.lamp(chat)[0] == "cold"
    with start() as run:
        run.qtbot.wait(60)
        assert run.said == [] and run.services.slots.lamp(chat)[0] == "cold"
        run.kept("Go on", chat)
        assert run.services.memories.saved(chat) is not None


def test_switched_off_nothing_is_kept_and_what_was_kept_goes(start):
    with start() as run:
        chat = run.kept()
        assert run.clients.asked[-1]["snapshot_dir"] == run.services.paths.snapshots
        run.services.settings["keep_memory"] = False
        run.memories.follow_settings()
        run.qtbot.waitUntil(lambda: run.files() == [])
        run.services.settings.save()
    with start() as run:
        assert "snapshot_dir" not in run.clients.asked[-1]
        run.kept("Go on", chat)
        assert run.files() == [] and run.memories.saved(chat) is None


def test_a_full_disk_is_said_and_the_chat_goes_on(start, monkeypatch):
    import engine

    with start() as run:
        failed = Future()
        failed.set_exception(engine.MachineError("The disk is full: make room."))
        monkeypatch.setattr(run.clients.last, "keep", lambda *_: failed)
        chat = run.kept()
        run.kept("Go on", chat)
        assert run.said == ["The disk is full: make room."]


def test_the_end_waits_a_bounded_time_for_a_slow_disk(start, monkeypatch):
    monkeypatch.setattr(room, "LEAVE_S", 0.4)
    with start() as run:
        run.ask()
        run.ask("And the sea?")
        monkeypatch.setattr(run.clients.last, "keep", lambda *_: Future())
        assert run.memories.hurry() == 2
        began = time.monotonic()
    assert time.monotonic() - began < 1.5


def test_a_disk_that_never_answers_does_not_hold_the_end(start, monkeypatch):
    monkeypatch.setattr(room, "LEAVE_S", 0.3)
    with start() as run:
        run.ask()
        monkeypatch.setattr(run.clients.last, "keep", lambda *_: Future())
        began = time.monotonic()
    assert 0.2 < time.monotonic() - began < 1.5


def test_what_a_killed_run_left_half_written_is_swept(start):
    with start() as run:
        folder = run.services.paths.snapshots
        run.kept()
        old, fresh = folder / ".chat-1-x.passing", folder / ".chat-2-x.passing"
        for path in (old, fresh):
            path.write_text("half")
        os.utime(old, (1, 1))
    with start(model="") as run:
        run.qtbot.waitUntil(lambda: not old.exists())
        assert fresh.exists()


def test_the_newest_index_stays_whatever_the_order(tmp_path):
    files = KeptFiles(tmp_path)
    first = files.saving()
    files.put(Kept(3, "a" * 16, 120, 5, 1.0))
    files.saving()()
    first()
    assert "120" in (tmp_path / INDEX).read_text() and not files.is_unsaved


def test_a_chat_too_large_for_the_time_left_is_not_begun(start, monkeypatch):
    with start() as run:
        run.ask()
        monkeypatch.setattr(room, "_GUESS", 10**12)
    with start(model="") as run:
        assert run.files() == []


def test_only_what_is_new_counts_for_the_time_left(start, monkeypatch):
    with start() as run:
        chat = run.kept("A question that is long. " * 40)
        n_kept = run.memories.saved(chat).n_tokens
        monkeypatch.setattr(
            run.memories,
            "_pace",
            1000 * run.memories.files.bytes_per_token(run.services.engine.mark),
        )
        run.ask("And?", chat)
        keeping = run.memories._take()
    assert n_kept > 150
    assert 0 <= keeping.seconds < 0.04  # at a thousand tokens a second


def test_a_damaged_index_loses_no_file(tmp_path):
    files = KeptFiles(tmp_path)
    kept = Kept(3, "a" * 16, 120, 5, 1.0)
    (tmp_path / kept.name).write_text("12345")
    files.put(kept)
    files.saving()()
    again = KeptFiles(tmp_path)
    again.load()
    assert again.find(3) == kept
    for damage in ("", "{", "[1]", '[{"mark": 3}]', "null", "[" * 100_000):
        (tmp_path / INDEX).write_text(damage)
        again.load()
        assert (again.find(3).n_tokens, again.find(3).n_bytes) == (0, 5)


def test_marks_tell_files_apart_by_what_they_hold(tmp_path):
    paths = [tmp_path / name for name in ("a.gguf", "b.gguf", "c.gguf")]
    for path, end in zip(paths, (b"x", b"x", b"y"), strict=True):
        path.write_bytes(b"GGUF" + bytes(200_000) + end)
    marks = [file_mark(path) for path in paths]
    assert marks[0] == marks[1] != marks[2]
    assert len(file_mark(tmp_path / "gone.gguf")) == 16


def test_saving_in_words():
    assert saving_words(1) == "Saving the memory of 1 chat…"
    assert saving_words(2) == "Saving the memory of 2 chats…"
