"""Memory that is given away: one conversation in one piece, taken over whole or refused why."""

import pytest

import engine
from engine.client.client import EngineClient
from engine.client.fake import FakeClient
from engine.errors import MachineError, StateFileError
from engine.memory.state_file import read_state
from engine.server.loop import Keeping
from tests.fakes.model import BOS, EOS, chaotic, loaded
from tests.fakes.paged import FINGERPRINT, PagedContext

SAID = [BOS, *range(200)]


def restless(tokens):
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


def client_of(folder=None, window=0):
    context = PagedContext(restless, 1024, 2, window=window, snapshot_bytes=1 << 20)
    model = loaded(None, context=context, forks=(1,), n_ctx=1024)
    keeping = Keeping(1 << 20, folder, 1 << 30)
    return EngineClient.over(lambda progress: model, 1, keeping=keeping)


def ask(client, prompt, n=5):
    request = engine.CompletionRequest(prompt, temperature=0, n_predict=n)
    return client.submit(request).result()


@pytest.mark.parametrize("window", [0, 32])
@pytest.mark.parametrize("from_disk", [False, True])
def test_another_machine_goes_on_without_reading(tmp_path, window, from_disk):
    mine, gift = tmp_path / "mine", tmp_path / "gift.safetensors"
    mine.mkdir()
    with client_of(mine, window) as client:
        answer = ask(client, SAID, 40)
        told = [*SAID, *answer.tokens]
        if from_disk:
            client.keep(told, mine / "chat.safetensors").result(10)
            client.erase_slot(0)
            ask(client, [BOS, *range(100, 250)])
        given = client.export_memory(told, gift).result(10)
        assert (given.n_tokens, given.path) == (len(told) - 1, str(gift))
        assert given.n_written == gift.stat().st_size
        assert client.metrics().prompts_saved == from_disk
    theirs = tmp_path / "theirs"
    for start in range(2):
        with client_of(theirs, window) as client:
            if not start:
                taken = client.import_memory(gift, theirs / "chat-9.safetensors").result(10)
                assert taken.n_tokens == len(told) - 1
            assert client.wait_until_ready(10)
            assert client.known_prefix(told).where == "disk"
            assert ask(client, [*told, 7, 8]).timings.n_read == 3
            client.erase_slot(0)
            if not start:  # and what was given away can be answered anew
                again = ask(client, SAID, 40)
                assert (again.timings.n_read, again.tokens) == (0, answer.tokens)


def test_only_the_conversation_is_in_the_file(tmp_path):
    with client_of(tmp_path) as client:
        path, gift = tmp_path / "chat.safetensors", tmp_path / "gift"
        for other in range(4):  # four branches behind the same beginning lie in the kept file
            branch = [*SAID, *range(other * 60, other * 60 + 60)]
            ask(client, branch)
            client.keep(branch, path).result(10)
        assert len(read_state(path).pieces) == 4
        client.erase_slot(0)
        whole = client.export_memory(SAID[:150], gift).result(10)
        assert whole.n_tokens == 150
    (piece,) = read_state(gift).pieces
    assert piece.arrays["tokens"].tolist() == SAID[:150]
    shown = piece.arrays["pool.0.positions"]
    assert shown.max() == 149
    assert len(shown) == 5


def test_what_does_not_fit_is_refused_with_what_differs(tmp_path, monkeypatch):
    gift, kept = tmp_path / "gift", tmp_path / "kept.safetensors"
    with client_of(tmp_path) as client:
        ask(client, SAID)
        client.export_memory(SAID, gift).result(10)
    whole = gift.read_bytes()
    with client_of(tmp_path) as client:
        for content, reason in (
            (whole[:3000], "cut short"),
            (whole[:-1] + b"x", "checksum"),
            (b"{}", "header"),
            (b"", "empty"),
        ):
            gift.write_bytes(content)
            with pytest.raises(StateFileError, match=reason):
                client.import_memory(gift, kept).result(10)
        with pytest.raises(StateFileError, match="could not be read"):
            client.import_memory(tmp_path / "missing", kept).result(10)
        gift.write_bytes(whole)
        with pytest.raises(MachineError, match="could not be stored"):
            client.import_memory(gift, tmp_path / "no" / "folder").result(10)
        monkeypatch.setitem(FINGERPRINT, "model", "another one")
        with pytest.raises(StateFileError, match="its model is “scripted”, here it is “another"):
            client.import_memory(gift, kept).result(10)
        assert not kept.exists()
        assert client.metrics().prompts_saved == 0
        assert ask(client, SAID).timings.n_read == len(SAID)


def test_a_file_may_be_taken_over_where_it_lies(tmp_path):
    gift = tmp_path / "gift.safetensors"
    with client_of(tmp_path / "a") as client:
        ask(client, SAID)
        client.export_memory(SAID, gift).result(10)
    with client_of(tmp_path / "b") as client:
        assert client.import_memory(gift, gift).result(10).n_written == 0
        assert ask(client, SAID).timings.n_read == 0


def test_nothing_known_is_no_file(tmp_path):
    with client_of(tmp_path) as client:
        nothing = client.export_memory(SAID, tmp_path / "gift").result(10)
        assert (nothing.path, nothing.n_tokens) == ("", 0)
        assert not (tmp_path / "gift").exists()


def test_the_scripted_engine_gives_and_takes_too(tmp_path):
    gift = tmp_path / "gift"
    with FakeClient("a story") as client:
        client.submit(engine.CompletionRequest("tell me")).result()
        given = client.export_memory("tell me", gift).result(1)
        assert given.n_tokens > 0
    with FakeClient("a story") as client:
        taken = client.import_memory(gift, tmp_path / "kept").result(1)
        assert taken.n_tokens == given.n_tokens
        assert client.known_prefix("tell me").where == "disk"
        with pytest.raises(StateFileError):
            client.import_memory(tmp_path / "missing", tmp_path / "kept").result(1)
