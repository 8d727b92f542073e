"""Every way in which a file can lie ends in a sentence, at once, with bounded memory."""

import os
import struct
import sys
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf import GGUF
from tests.make import gguf_file as make
from tests.make.bounds import bounded

SMALL = make.small().bytes()


def refused(path, says, kind=ModelFileError):
    """Open `path`, expect the refusal within 0.2 s and 8 MB, and return its sentence."""
    tracemalloc.start()
    with bounded(0.2), pytest.raises(kind, match=says) as caught:
        GGUF.open(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
    sentence = str(caught.value)
    assert sentence.endswith(".") and sentence.isprintable() and len(sentence) < 400
    return sentence


def written(tmp_path, raw):
    path = tmp_path / "hostile.gguf"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    "raw, says",
    [
        (b"", "is empty"),
        (b"G", "not a GGUF"),
        (b"GGUF", "damaged or cut short: the header"),
        (b"GGUF\x03\x00\x00\x00" + b"\x00" * 9, "damaged or cut short: the header"),
        (b"PK\x03\x04" + bytes(40), "ZIP"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\x40\x00\x00\x00\x00\x00\x00\x00" + b'{"a":1}' + bytes(60), "safetensors"),
        (b"lmgg" + bytes(60), "old GGML"),
        (bytes(range(100)), "not a GGUF"),
    ],
)
def test_other_files(tmp_path, raw, says):
    refused(written(tmp_path, raw), says)


@pytest.mark.parametrize(
    "version, says",
    [
        (1, "version 1"),
        (4, "version 4"),
        (0, "version 0"),
        (0x03000000, "big-endian"),
        (0xFFFFFFFF, "version"),
    ],
)
def test_versions(tmp_path, version, says):
    raw = SMALL[:4] + struct.pack("<I", version) + SMALL[8:]
    refused(written(tmp_path, raw), says, UnsupportedModelError)


def test_counts_that_no_file_can_hold(tmp_path):
    for field in ("n_keys", "n_tensors"):
        for count in (1 << 63, (1 << 64) - 1, 1 << 40, 70_000, 60_000):
            made = make.small(**{field: count})
            refused(made.write(tmp_path / "x.gguf"), "damaged")


def claim(kind, count, more=b""):
    """A key whose array of `kind` claims `count` items and holds `more`."""
    return make.string("k") + struct.pack("<IIQ", make.ARRAY, kind, count) + more


@pytest.mark.parametrize("kind", [make.U8, make.F64, make.STRING, make.ARRAY])
@pytest.mark.parametrize("count", [1 << 60, (1 << 64) - 1, 1 << 31, 1000])
def test_a_hundred_bytes_that_claim_an_endless_array(tmp_path, kind, count):
    made = make.FileOfTest([claim(kind, count, bytes(20))])
    assert len(made.bytes()) < 100
    refused(made.write(tmp_path / "x.gguf"), "“k” claims")


def test_string_lengths(tmp_path):
    for length in (1 << 63, (1 << 64) - 1, 1 << 40, 200):
        one = make.string("k") + struct.pack("<IQ", make.STRING, length)
        refused(make.FileOfTest([one]).write(tmp_path / "x.gguf"), "“k” goes on past")
        many = claim(make.STRING, 2, struct.pack("<QQ", length, 0))
        refused(make.FileOfTest([many]).write(tmp_path / "x.gguf"), "“k” goes on past")
        last = claim(make.STRING, 1, struct.pack("<Q", length))
        refused(make.FileOfTest([last]).write(tmp_path / "x.gguf"), "“k” goes on past")


def test_arrays_nested_without_end(tmp_path):
    deep = struct.pack("<IQ", make.ARRAY, 1) * 100_000
    made = make.FileOfTest([make.string("k") + struct.pack("<I", make.ARRAY) + deep])
    refused(made.write(tmp_path / "x.gguf"), "nests arrays")


def test_more_items_than_any_vocabulary(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.gguf.cursor.MAX_ITEMS", 1000)
    made = make.FileOfTest([make.key(n, make.ARRAY, (make.U8, [0] * 600)) for n in "ab"])
    refused(made.write(tmp_path / "x.gguf"), "“b” has 600 items")


def test_a_header_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.gguf.cursor.MAX_HEADER_BYTES", 1 << 20)
    made = make.FileOfTest([make.key("k", make.STRING, "x" * (2 << 20))])
    refused(made.write(tmp_path / "x.gguf"), "goes on past 1 MB")


def test_unknown_value_types(tmp_path):
    made = make.FileOfTest([make.string("k") + struct.pack("<I", 13) + bytes(8)])
    refused(made.write(tmp_path / "x.gguf"), "“k” has the unknown value type 13")
    made = make.FileOfTest([claim(99, 1, bytes(16))])
    refused(made.write(tmp_path / "x.gguf"), "unknown item type 99")


def test_names(tmp_path):
    u8 = struct.pack("<IB", make.U8, 1)
    for raw, says in [
        (make.string(b"") + u8, "key has 0 bytes"),
        (make.string(b"\xff\xfe") + u8, "not text"),
        (make.string(b"k" * 70_000) + u8, "key has 70,000 bytes"),
        (struct.pack("<Q", 1 << 62) + u8, "key has 4,611,686"),
    ]:
        refused(make.FileOfTest([raw]).write(tmp_path / "x.gguf"), says)
    twice = make.FileOfTest([make.key("k", make.U8, 1)] * 2)
    refused(twice.write(tmp_path / "x.gguf"), "“k” appears twice")
    evil = make.FileOfTest([make.key("k\x1b[2J\n", make.U8, 1)] * 2)
    assert "\x1b" not in refused(evil.write(tmp_path / "x.gguf"), "appears twice")
    long = make.FileOfTest(tensors=[("t" * 128, (1,), 0, bytes(4))])
    refused(long.write(tmp_path / "x.gguf"), "tensor has 128 bytes")
    same = make.FileOfTest(tensors=[("t", (1,), 0, bytes(4))] * 2)
    refused(same.write(tmp_path / "x.gguf"), "“t” appears twice")


@pytest.mark.parametrize(
    "kind, value",
    [
        (make.U32, 0),
        (make.U32, 1),
        (make.U32, 33),
        (make.U32, 1 << 31),
        (make.I32, -32),
        (make.F32, float("nan")),
        (make.F32, 32.0),
        (make.BOOL, True),
        (make.STRING, "32"),
        (make.ARRAY, (make.U32, [32])),
    ],
)
def test_alignments(tmp_path, kind, value):
    made = make.small()
    made.keys.append(make.key("general.alignment", kind, value))
    refused(made.write(tmp_path / "x.gguf"), "alignment")


@pytest.mark.parametrize(
    "shape, kind, says",
    [
        ((1 << 62, 1 << 62, 1 << 62, 1 << 62), 0, "claims to lie"),
        ((1 << 32, 1 << 32), 0, "claims to lie"),
        ((1 << 63,), 0, "claims to lie"),
        ((0, 4), 0, "dimension of 0"),
        ((33,), 2, "whole Q4_0 blocks"),
        ((1,) * 5, 0, "has 5 dimensions"),
        ((1,) * 900, 0, "has 900 dimensions"),
    ],
)
def test_shapes(tmp_path, shape, kind, says):
    made = make.FileOfTest(tensors=[("t", shape, kind, bytes(36))])
    refused(made.write(tmp_path / "x.gguf"), says)


@pytest.mark.parametrize("kind", [4, 5, 31, 36, 43, 0xFFFFFFFF])
def test_unknown_tensor_types(tmp_path, kind):
    made = make.FileOfTest(tensors=[("t", (32,), kind, bytes(64))])
    refused(made.write(tmp_path / "x.gguf"), f"type {kind}", UnsupportedModelError)


def test_offsets(tmp_path):
    def offset(at):
        return make.small(offsets={"out.weight": at}).write(tmp_path / "x.gguf")

    refused(offset(33), "not at its alignment")
    refused(offset(0), "“norm.weight” and “out.weight” overlap")
    refused(offset(96), "“out.weight” and “blk.0.w” overlap")
    refused(offset((1 << 64) - 32), "claims to lie")
    refused(offset(5_000_000_000), r"cut short: \d+ of 5,000,000,\d+ bytes|0.0 of 5.0 GB")


def test_cut_short_says_how_much(tmp_path):
    raw = bytes(4096)
    made = make.FileOfTest(tensors=[("t", (1024,), 0, raw)])
    whole = made.bytes()
    refused(written(tmp_path, whole[:-1]), f"cut short: {len(whole) - 1:,} of {len(whole):,} bytes")
    refused(written(tmp_path, whole[:-3000]), "cut short: 1.2 of 4.2 kB")
    path = tmp_path / "sparse.gguf"
    path.write_bytes(make.FileOfTest(tensors=[("t", (1_175_000_000,), 0, b"")]).bytes())
    with open(path, "r+b") as file:
        file.truncate(3_100_000_000)
    refused(path, r"^This file is cut short: 3\.1 of 4\.7 GB; download or copy it again\.$")


def test_a_file_cut_at_every_length(tmp_path):
    path = tmp_path / "cut.gguf"
    for n in range(len(SMALL)):
        path.write_bytes(SMALL[:n])
        with pytest.raises(ModelFileError):
            GGUF.open(path)


def test_paths_that_are_no_files(tmp_path):
    refused(tmp_path, "is a folder")
    refused(tmp_path / "missing.gguf", "There is no file “missing.gguf”")
    refused(tmp_path / "a\0b.gguf", "There is no file")
    file = written(tmp_path, SMALL)
    refused(file / "below.gguf", "There is no file")
    refused(tmp_path / ("x" * 300), "could not be read")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.gguf")
        refused(tmp_path / "pipe.gguf", "a folder or a device")
    if sys.platform == "linux":
        refused("/dev/zero", "a folder or a device")
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        refused(tmp_path / "loop", "could not be read")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = written(tmp_path, SMALL)

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)
    refused(path, "may not be read")


def test_a_failing_drive(tmp_path, monkeypatch):
    path = written(tmp_path, SMALL)

    def failing(read, size):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("engine.gguf.reader.read_header", failing)
    refused(path, "Input/output error")


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, SMALL)
    real = os.fstat

    class Longer:
        def __init__(self, about):
            self.st_mode, self.st_size = about.st_mode, about.st_size + 1000

    monkeypatch.setattr(os, "fstat", lambda fd: Longer(real(fd)))
    path.write_bytes(SMALL[:200])
    refused(path, "goes on past")


def test_a_file_without_architecture_is_no_model(tmp_path):
    with GGUF.open(make.FileOfTest().write(tmp_path / "x.gguf")) as model:
        with pytest.raises(ModelFileError, match="names no architecture"):
            _ = model.arch


mutations = st.lists(
    st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=6
)


@settings(
    max_examples=300,
    deadline=1000,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(changes=mutations, cut=st.integers(0, 40), tail=st.binary(max_size=40))
def test_any_change_opens_or_is_refused(tmp_path, changes, cut, tail):
    raw = bytearray(SMALL)
    for at, byte in changes:
        raw[at] = byte
    path = written(tmp_path, bytes(raw[: len(raw) - cut]) + tail)
    try:
        with GGUF.open(path) as model:
            for entry in model.tensors.values():
                assert entry.array().nbytes == entry.n_bytes
            for value in model.metadata.values():
                repr(value)
    except ModelFileError as error:
        assert str(error).isprintable()


@settings(max_examples=100, deadline=1000)
@given(words=st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=30))
def test_any_words_after_the_magic(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("words") / "w.gguf"
    counts = struct.pack("<QQ", words[0] % 3, words[-1] % 3)
    path.write_bytes(SMALL[:8] + counts + struct.pack(f"<{len(words)}Q", *words))
    try:
        GGUF.open(path).close()
    except ModelFileError as error:
        assert str(error).isprintable()
