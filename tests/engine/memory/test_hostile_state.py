"""Headers and lists made up by somebody else: refused with a sentence, whatever they say."""

import random

import numpy as np
import pytest

from engine.errors import StateFileError
from engine.memory import KVLayer, Memory, Segment
from engine.memory.saved_sequence import compose
from engine.memory.state_file import MARK, read_state

FINGERPRINT = {"model": "a hash"}
LAYERS = [KVLayer(2, 16, 16), KVLayer(1, 16, 16, 64)]


def write(memory, n):
    first = memory.seq_pos_max(0) + 1
    positions = np.arange(first, first + n, dtype=np.int32)
    memory.place([Segment(0, 0, n)], positions, positions)


def make_file(path):
    """A file of two pieces, each with a checkpoint."""
    memory = Memory(LAYERS, 1024, 1, "f16", "f16")
    for n in (200, 90):
        write(memory, n)
        behind = memory.snapshot(0, FINGERPRINT)
        write(memory, 20)
        snapshot = memory.snapshot(0, FINGERPRINT)
        snapshot.write(path, adds=True, behind=[behind])
        for each in (behind, snapshot):
            each.release()
    return memory


def mutate(content, rng):
    """Change a few bytes where headers and the seal lie."""
    second = content.index(MARK)
    places = [(0, 2200), (second, second + 2200), (len(content) - 64, len(content))]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = min(len(content) - 1, rng.randrange(*rng.choice(places)))
        drawn = rng.random()
        if drawn < 0.5:
            content[at] ^= 1 << rng.randrange(8)
        elif drawn < 0.7:
            content[at] = rng.choice(b'0123456789-[]{}",:e')
        elif drawn < 0.85:
            del content[at : at + rng.randrange(1, 9)]
        else:
            content[at:at] = bytes(rng.choices(b'0123456789[]{}",', k=3))
    return content


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_file_says_it_is_read_or_refused(tmp_path, seed):
    """Checksums are left out, as they would be if somebody had made them fit."""
    path, rng, n_refused = tmp_path / "chat", random.Random(seed), 0
    memory = make_file(path)
    whole = path.read_bytes()
    assert len(read_state(path).pieces) == 2
    for _ in range(150):
        path.write_bytes(mutate(bytearray(whole), rng))
        try:
            saved = compose(read_state(path, verifies=False), FINGERPRINT, 1024, 2)
            for n_tokens in (len(saved.tokens), *saved.checkpoints):
                saved.first(n_tokens).check(memory.pools)
        except StateFileError as error:
            n_refused += 1
            assert str(error).endswith(".")
    assert n_refused > 75
