"""A model in several files opens as one from any piece, and a wrong set says what is wrong."""

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf import GGUF, piece_paths, split_name
from tests.make import gguf_file as make


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_piece_opens_the_whole(tmp_path, given):
    folder = tmp_path / "Größe モデル"
    folder.mkdir()
    paths = make.split_set(folder)
    with GGUF.open(paths[given]) as model:
        assert model.arch == "llama"
        assert model.paths == tuple(paths)
        assert model.size_bytes == sum(path.stat().st_size for path in paths)
        assert list(model.tensors) == ["blk.0.w", "blk.1.w", "blk.2.w"]
        for i in range(3):
            stored = model.tensors[f"blk.{i}.w"].array().view(np.float32)
            assert (stored == i).all()


def test_a_missing_piece_is_named(tmp_path):
    paths = make.split_set(tmp_path)
    paths[1].unlink()
    with pytest.raises(ModelFileError, match=r"Piece 2 of 3 .*“big-00002-of-00003.gguf”"):
        GGUF.open(paths[0])
    with pytest.raises(ModelFileError, match="no file “big-00002"):
        GGUF.open(paths[1])


def test_a_renamed_piece(tmp_path):
    paths = make.split_set(tmp_path)
    with pytest.raises(ModelFileError, match=r"piece 2 of 3.*NAME-00002-of-00003\.gguf"):
        GGUF.open(paths[1].rename(tmp_path / "renamed.gguf"))


def test_pieces_in_the_wrong_order(tmp_path):
    paths = make.split_set(tmp_path)
    paths[1].rename(tmp_path / "x")
    paths[2].rename(paths[1])
    (tmp_path / "x").rename(paths[2])
    with pytest.raises(ModelFileError, match="“big-00002-of-00003.gguf” is not piece 2"):
        GGUF.open(paths[0])


def test_a_damaged_piece_is_named(tmp_path):
    paths = make.split_set(tmp_path)
    paths[2].write_bytes(paths[2].read_bytes()[:-5])
    with pytest.raises(ModelFileError, match="^“big-00003-of-00003.gguf”: This file is cut short"):
        GGUF.open(paths[0])


def test_pieces_of_different_downloads(tmp_path):
    paths = make.split_set(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    make.split_set(other)[1].replace(paths[1])
    GGUF.open(paths[0]).close()
    keys = [make.key("split.no", make.U16, 1), make.key("split.count", make.U16, 3)]
    make.FileOfTest(keys).write(paths[1])
    with pytest.raises(ModelFileError, match="hold 2 tensors and should hold 3"):
        GGUF.open(paths[0])
    make.FileOfTest(keys, [("blk.0.w", (1,), 0, bytes(4))]).write(paths[1])
    with pytest.raises(ModelFileError, match="“blk.0.w” appears twice"):
        GGUF.open(paths[0])


@pytest.mark.parametrize("count", [70_000, (1 << 32) - 1])
def test_a_count_that_no_set_has(tmp_path, count):
    made = make.FileOfTest([make.key("split.count", make.U32, count)])
    with pytest.raises(ModelFileError, match="name does not say so"):
        GGUF.open(made.write(tmp_path / "x-00001-of-00003.gguf"))


def test_keys_of_the_wrong_type(tmp_path):
    made = make.FileOfTest([make.key("split.count", make.STRING, "3")])
    with pytest.raises(ModelFileError, match=r"split\.count is not a number"):
        GGUF.open(made.write(tmp_path / "x-00001-of-00003.gguf"))


def test_a_single_file_named_like_a_piece_opens_alone(tmp_path):
    path = make.small().write(tmp_path / "x-00001-of-00003.gguf")
    with GGUF.open(path) as model:
        assert model.paths == (path,)


def test_names(tmp_path):
    assert split_name("big-00002-of-00003.gguf") == ("big", 2, 3)
    assert split_name("big-00002-of-00003.GGUF") == ("big", 2, 3)
    for name in ("big.gguf", "big-00004-of-00003.gguf", "big-00000-of-00003.gguf", "b-1-of-3.gguf"):
        assert split_name(name) is None
        assert piece_paths(tmp_path / name) == [tmp_path / name]
    assert [p.name for p in piece_paths(tmp_path / "b-00002-of-00002.gguf")] == [
        "b-00001-of-00002.gguf",
        "b-00002-of-00002.gguf",
    ]
