"""Conversations in files: found again, cut to fit, limited, never in the way, never trusted."""

import threading

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import MachineError
from engine.server.loop import Keeping
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, EOS, ListSnapshot, answering, chaotic, loaded
from tests.fakes.paged import PagedContext

PROMPT = "tell me of the mill and of the river>"


def client_of(folder=None, logits_of=None, n_slots=1, folder_bytes=1 << 30, **options):
    model = loaded(logits_of or answering(b"a story"), **options)
    keeping = Keeping(1 << 20, folder, folder_bytes)
    return EngineClient.over(lambda progress: model, n_slots, keeping=keeping), model.context


def submit(client, prompt, **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options))


def ask(client, prompt, **options):
    return submit(client, prompt, **options).result()


def restless(tokens):
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


def test_after_a_restart_a_kept_conversation_is_not_read_again(tmp_path):
    client, _ = client_of(tmp_path)
    with client:
        first = ask(client, PROMPT)
        kept = client.keep(PROMPT + "a story", tmp_path / "one.safetensors").result(10)
        assert kept.n_tokens == 1 + len(PROMPT + "a story")
        size = (tmp_path / "one.safetensors").stat().st_size
        assert client.metrics().prompts_saved_bytes == size
        assert client.metrics().prompts_saved == 1
    client, context = client_of(tmp_path)
    with client:
        assert client.wait_until_ready(10)
        assert client.known_prefix(PROMPT).where == "disk"
        again = ask(client, PROMPT)
        assert (again.timings.n_read, again.tokens) == (0, first.tokens)
        follow = ask(client, PROMPT + "a story, and then?>")
        assert follow.timings.n_read == len(", and then?>")
        assert client.known_prefix(PROMPT).where == "slot"
    assert context.n_tokens_decoded < 40


@pytest.mark.parametrize("window", [0, 32])
def test_the_same_with_real_pages_and_files(tmp_path, window):
    said, n_read = [BOS, *range(200)], 201
    for _ in range(4):
        context = PagedContext(restless, 1024, 2, window=window, snapshot_bytes=1 << 20)
        client, _ = client_of(tmp_path, context=context, forks=(1,), n_ctx=1024)
        with client:
            last = ask(client, said, n_predict=50)
            assert last.timings.n_read == n_read
            for i, token in enumerate(last.tokens[:5]):
                assert token == int(restless([*said, *last.tokens[:i]]).argmax())
            client.keep([*said, *last.tokens], tmp_path / "real.safetensors").result(10)
            context.memory.check_integrity()
        said += [*last.tokens, 7, 7]
        n_read = 3  # the last token of an answer is sampled, not read


def test_a_kept_answer_is_said_again_without_reading_real_pages(tmp_path):
    said = [BOS, *range(200)]
    for start in range(2):
        context = PagedContext(restless, 512, 2)
        client, _ = client_of(tmp_path, context=context, forks=(1,), n_ctx=512)
        with client:
            last = ask(client, said, n_predict=20)
            assert last.timings.n_read == (0 if start else len(said))
            client.keep(said, tmp_path / "real.safetensors").result(10)


def test_only_what_belongs_to_the_conversation_is_kept(tmp_path):
    client, context = client_of()
    with client:
        ask(client, PROMPT)
        other = PROMPT[:-10] + "something else>"
        kept = client.keep(other, tmp_path / "cut.safetensors").result(10)
    assert kept.n_tokens == 1 + len(PROMPT) - 10
    assert context.peek_saved(tmp_path / "cut.safetensors") == [BOS, *PROMPT[:-10].encode()]


def test_a_conversation_that_left_its_slot_is_kept_too_and_one_unknown_is_no_file(tmp_path):
    client, _ = client_of()
    with client:
        ask(client, PROMPT)
        ask(client, "another one, so that the first is held>")
        assert client.keep(PROMPT, tmp_path / "held").result(10).n_tokens == 1 + len(PROMPT)
        path = tmp_path / "unknown"
        nothing = client.keep([1, 2, 3], path).result(10)
        assert (nothing.path, nothing.n_tokens, path.exists()) == ("", 0, False)


def test_a_file_is_copied_when_it_knows_the_most(tmp_path):
    client, _ = client_of(tmp_path)
    with client:
        ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "one.safetensors").result(10)
        client.erase_slot(0)
        kept = client.keep(PROMPT, tmp_path / "two.safetensors").result(10)
        assert kept.n_tokens == 1 + len(PROMPT)
        client.discard(tmp_path / "one.safetensors")
        assert ask(client, PROMPT).timings.n_read == 0


def test_damaged_files_are_skipped_with_the_reason(tmp_path):
    client, _ = client_of(tmp_path)
    with client:
        ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "good.safetensors").result(10)
    (tmp_path / "cut.safetensors").write_text((tmp_path / "good.safetensors").read_text()[:20])
    (tmp_path / "empty.safetensors").touch()
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "other.txt").write_text("not ours")
    client, _ = client_of(tmp_path)
    with client:
        assert ask(client, PROMPT).timings.n_read == 0
        skipped = client.skipped_files
        assert set(skipped) == {"cut.safetensors", "empty.safetensors", "folder.safetensors"}
        assert all("cannot be read" in reason for reason in skipped.values())


@pytest.mark.parametrize("harm", ["delete", "damage"])
def test_a_file_that_is_gone_or_damaged_meanwhile_is_read_over(tmp_path, harm):
    client, _ = client_of(tmp_path)
    with client:
        ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "one.safetensors").result(10)
        client.erase_slot(0)
        if harm == "delete":
            (tmp_path / "one.safetensors").unlink()
        else:
            (tmp_path / "one.safetensors").write_text("{}")
        last = ask(client, PROMPT)
        assert (last.text, last.timings.n_cached) == ("a story", 0)
        assert client.known_prefix([5, 6]).where == ""
        assert client._loop.saved.n_files == 0


def test_a_file_too_long_for_the_context_is_no_reason_to_fail(tmp_path):
    client, _ = client_of(tmp_path)
    with client:
        ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "one.safetensors").result(10)
    client, _ = client_of(tmp_path, n_ctx=24)
    with client:
        assert ask(client, PROMPT[:10] + ">").text == "a story"


def test_the_oldest_files_of_the_folder_go_when_the_disk_limit_is_reached(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    client, _ = client_of(tmp_path / "cache", folder_bytes=5_000)
    with client:
        for i in range(6):
            text = f"{i} is a conversation of its own>"
            ask(client, text)
            client.keep(text, tmp_path / "cache" / f"{i}.safetensors").result(10)
            client.keep(text, elsewhere / f"{i}.safetensors").result(10)
        names = sorted(path.name for path in (tmp_path / "cache").iterdir())
        assert 1 <= len(names) < 6
        assert names == [f"{i}.safetensors" for i in range(6 - len(names), 6)]
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 5_000
        assert len(list(elsewhere.iterdir())) == 6


def test_a_folder_that_cannot_be_made_is_said_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="choose another"):
        client_of(tmp_path / "file" / "folder")


def test_writing_keeps_no_one_waiting_and_a_slot_may_change_meanwhile(tmp_path, monkeypatch):
    is_writing, may_end = threading.Event(), threading.Event()
    write = ListSnapshot.write

    def slow(self, *given, **options):
        is_writing.set()
        assert may_end.wait(10)
        return write(self, *given, **options)

    monkeypatch.setattr(ListSnapshot, "write", slow)
    client, context = client_of(logits_of=answering(b"x" * 60))
    with client:
        ask(client, PROMPT)
        kept = client.keep(PROMPT, tmp_path / "one")
        assert is_writing.wait(10)
        assert ask(client, "something else, of some length>").text == "x" * 60
        assert not kept.done()
        may_end.set()
        assert kept.result(10).n_tokens == 1 + len(PROMPT)
        assert context.peek_saved(tmp_path / "one") == [BOS, *PROMPT.encode()]
    assert context.memory.snapshots == []


def test_reading_a_file_keeps_no_one_else_waiting(tmp_path):
    client, context = client_of(tmp_path, logits_of=answering(b"y" * 80), n_slots=2)
    is_reading, may_end = threading.Event(), threading.Event()
    read = context.read_saved

    def slow(path):
        is_reading.set()
        assert may_end.wait(10)
        return read(path)

    context.read_saved = slow
    with client:
        first = ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "one.safetensors").result(10)
        client.erase_slot(first.id_slot)
        waiting = submit(client, PROMPT)
        assert is_reading.wait(10)
        assert ask(client, "a quick one>").text == "y" * 80
        assert not waiting.is_finished
        may_end.set()
        assert waiting.result().timings.n_read == 0
        restored = client.restore_slot(1, tmp_path / "one.safetensors")
        assert restored.n_tokens == 1 + len(PROMPT)


def test_cancelling_what_waits_for_a_file_frees_the_slot(tmp_path):
    client, context = client_of(tmp_path)
    may_end, read = threading.Event(), context.read_saved

    def slow(path):
        assert may_end.wait(10)
        return read(path)

    context.read_saved = slow
    with client:
        ask(client, PROMPT)
        client.keep(PROMPT, tmp_path / "one.safetensors").result(10)
        client.erase_slot(0)
        waiting = submit(client, PROMPT)
        waiting.cancel()
        assert waiting.result().stop_type == "cancelled"
        other = submit(client, "another>")
        may_end.set()
        assert other.result().text == "a story"


def test_a_write_that_fails_is_told_and_nothing_is_lost(tmp_path):
    client, context = client_of()
    gate = Gate(context)
    gate.open()
    with client:
        ask(client, PROMPT)
        snapshot = context.snapshot_sequence

        def failing(seq_id):
            held = snapshot(seq_id)
            held.write = lambda *given, **options: (_ for _ in ()).throw(MachineError("disk full"))
            return held

        context.snapshot_sequence = failing
        with pytest.raises(MachineError, match="disk full"):
            client.save_slot(0, tmp_path / "x")
        with pytest.raises(MachineError, match="disk full"):
            client.keep(PROMPT, tmp_path / "y").result(10)
        context.snapshot_sequence = snapshot
        assert context.memory.snapshots == []
        assert ask(client, PROMPT).timings.n_read == 0


def test_the_logits_come_back_from_the_file_as_they_were(tmp_path):
    client, context = client_of(tmp_path, logits_of=restless)
    with client:
        ask(client, [BOS, *range(20)], n_predict=4)
        client.keep([BOS, *range(20)], tmp_path / "one.safetensors").result(10)
    saved = context.read_saved(tmp_path / "one.safetensors")
    assert np.array_equal(saved.extras["row"], restless([BOS, *range(20)]))
    assert saved.extras["n_prompt"].tolist() == [21]


def test_an_answer_adds_its_own_pages_to_the_file(tmp_path):
    context = PagedContext(restless, 8192, 2)
    client, _ = client_of(tmp_path, context=context, forks=(1,), n_ctx=8192)
    page = context.memory.pools[0].page_bytes
    path, said = tmp_path / "chat.safetensors", [BOS, *(i % 256 for i in range(4000))]
    with client:
        first = client.keep([*said, *ask(client, said, n_predict=20).tokens], path).result(10)
        assert first.n_written == path.stat().st_size
        for n in (5, 40, 100):
            answer = ask(client, said, n_predict=n).tokens
            said += [*answer, 7]
            kept = client.keep(said, path).result(10)
            assert kept.n_tokens >= len(said) - 2
            assert kept.n_written <= (-(-n // 32) + 1) * page + 8192
        assert client.keep(said, path).result(10).n_written == 0
        assert client.metrics().prompts_saved_bytes == path.stat().st_size
    client, _ = client_of(tmp_path, context=PagedContext(restless, 8192, 2), forks=(1,), n_ctx=8192)
    with client:
        assert ask(client, said, n_predict=1).timings.n_read <= 2


def test_a_file_found_damaged_is_not_added_to(tmp_path):
    context = PagedContext(restless, 1024, 2)
    client, _ = client_of(tmp_path, context=context, forks=(1,), n_ctx=1024)
    path, said = tmp_path / "chat.safetensors", [BOS, *range(200)]
    with client:
        ask(client, said, n_predict=5)
        client.keep(said, path).result(10)
        whole = bytearray(path.read_bytes())
        whole[-9] ^= 1
        path.write_bytes(whole)
        client.erase_slot(0)
        assert ask(client, said, n_predict=5).timings.n_cached == 0
        client.keep(said, path).result(10)
        client.erase_slot(0)
        assert ask(client, said, n_predict=5).timings.n_read == 0


@pytest.mark.parametrize("n_answer", [3, 30, 90])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_window_answers_again_from_the_file_without_reading(tmp_path, n_answer, restarts):
    def start():
        context = PagedContext(restless, 1024, 2, window=32, snapshot_bytes=1 << 20)
        return client_of(tmp_path, context=context, forks=(1,), n_ctx=1024)[0]

    path, said = tmp_path / "chat.safetensors", [BOS, *range(200)]
    client = start()
    try:
        for turn in range(3):
            answer = ask(client, said, n_predict=n_answer)
            client.keep([*said, *answer.tokens], path).result(10)
            if restarts:
                client.close()
                client = start()
                assert client.wait_until_ready(10)
                assert client.known_prefix(said).n_tokens == len(said)
            if n_answer == 30:  # kept again from memory that knows no more than the file
                ask(client, [*said, *answer.tokens], n_predict=1)
                told = [*said, *answer.tokens[:-1]]
                assert client.keep(told, path).result(10).n_written == 0
                client.erase_slot(0)
            again = ask(client, said, n_predict=n_answer)
            assert (again.timings.n_read, again.tokens) == (0, answer.tokens)
            said += [*answer.tokens, 7 + turn]
    finally:
        client.close()


@pytest.mark.parametrize("n_answer", [10, 80])
def test_a_question_is_asked_otherwise_after_a_restart_by_reading_what_is_new(tmp_path, n_answer):
    """Windows have let go of all that; the file still knows where three turns began."""

    def start():
        context = PagedContext(restless, 2048, 2, window=32, snapshot_bytes=1 << 20)
        return client_of(tmp_path, context=context, forks=(1,), n_ctx=2048)[0]

    path, said, begun = tmp_path / "chat.safetensors", [BOS, *range(200)], []
    with start() as client:
        for turn in range(4):
            said += [7, turn, 9]
            said += ask(client, said, n_predict=n_answer).tokens
            begun.append(len(said))
            client.keep(said, path).result(10)
    for back in (1, 2, 3):
        with start() as client:
            end = begun[-1 - back]
            client.wait_until_ready(10)
            other = [*said[:end], 7, 70, 71, 72]
            last = ask(client, other, n_predict=3)
            assert last.timings.n_read <= 5  # the answer's last token was sampled, not read
            assert last.tokens[0] == int(restless(other).argmax())
