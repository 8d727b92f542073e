"""A chat with its memory is one file; whatever else is opened in its place is refused."""

import io
import json
import random
import zipfile

import pytest

from app.chats.chat_file import Remembered, read_chat_file, write_chat_file
from app.errors import ExchangeError, StorageError

REMEMBERED = Remembered("lamp · Q4_0", "0123456789abcdef", 12)


@pytest.fixture
def path(tmp_path):
    memory = tmp_path / "memory"
    memory.write_bytes(bytes(range(256)) * 40)
    path = tmp_path / "Über 灯.inglenook"
    write_chat_file(path, '{"title": "灯"}', REMEMBERED, memory)
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "snapshots"


def test_what_was_written_comes_back(path, folder):
    file = read_chat_file(path, folder)
    assert json.loads(file.chat) == {"title": "灯"}
    assert file.remembered == REMEMBERED
    assert file.memory.read_bytes() == bytes(range(256)) * 40
    assert file.memory.parent == folder


def test_a_chat_without_memory_leaves_nothing_beside(tmp_path, folder):
    write_chat_file(tmp_path / "a.inglenook", "{}", Remembered())
    file = read_chat_file(tmp_path / "a.inglenook", folder)
    assert (file.memory, file.remembered) == (None, Remembered())
    assert not folder.exists()


def archive(**members):
    """A file with other members: name -> (content, how it is stored)."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name, (content, kind) in members.items():
            written.writestr(name.replace("_", "."), content, kind)
    return made.getvalue()


ABOUT = {
    "format": "inglenook conversation with memory",
    "version": 1,
    **{"model": "m", "mark": "0123456789abcdef", "n_tokens": 1},
}
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
HOSTILE = {
    "no archive": b"GGUF" + bytes(100),
    "nothing": b"",
    "no members": archive(),
    "no chat": archive(about_json=(json.dumps(ABOUT), STORED)),
    "no format": archive(about_json=("{}", STORED), chat_json=("{}", STORED)),
    "about is a list": archive(about_json=("[1]", STORED), chat_json=("{}", STORED)),
    "about is no JSON": archive(about_json=("\xff", STORED), chat_json=("{}", STORED)),
    "deep": archive(about_json=("[" * 60_000, DEFLATED), chat_json=("{}", STORED)),
    "a large about": archive(about_json=(b" " * 70_000, DEFLATED), chat_json=("{}", STORED)),
    "a path as mark": archive(
        about_json=(json.dumps(ABOUT | {"mark": "../../../evil"}), STORED),
        chat_json=("{}", STORED),
    ),
    "no count": archive(
        about_json=(json.dumps(ABOUT | {"n_tokens": 1e300}), STORED), chat_json=("{}", STORED)
    ),
    "a memory that swells": archive(
        about_json=(json.dumps(ABOUT), STORED),
        chat_json=("{}", STORED),
        memory_safetensors=(bytes(50_000_000), DEFLATED),
    ),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_another_file_is_refused_with_nothing_left(tmp_path, folder, content):
    (tmp_path / "x.inglenook").write_bytes(content)
    with pytest.raises(ExchangeError, match="no chat that was saved here"):
        read_chat_file(tmp_path / "x.inglenook", folder)
    assert not folder.exists() or list(folder.iterdir()) == []


def test_a_damaged_file_is_read_or_refused(path, folder):
    whole, chance = path.read_bytes(), random.Random(5)
    for _ in range(300):
        damaged = bytearray(
            whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole
        )
        for _ in range(chance.randrange(1, 4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            read_chat_file(path, folder).memory.unlink()
        except (ExchangeError, AttributeError):
            pass
        assert list(folder.iterdir()) == []


def test_a_newer_file_and_a_missing_one_are_told_apart(tmp_path, folder):
    newer = archive(about_json=(json.dumps(ABOUT | {"version": 2}), STORED))
    (tmp_path / "x.inglenook").write_bytes(newer)
    with pytest.raises(ExchangeError, match="newer version"):
        read_chat_file(tmp_path / "x.inglenook", folder)
    with pytest.raises(StorageError):
        read_chat_file(tmp_path / "y.inglenook", folder)


def test_a_full_disk_leaves_the_old_file(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(StorageError):
        write_chat_file(path, "{}", REMEMBERED, tmp_path / "gone")
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir() if other.name.startswith(".")] == []
