"""A batch is checked before anything happens, and its rows are grouped by sequence."""

import numpy as np
import pytest

from engine.errors import RequestError
from engine.memory import KVLayer, Memory, Segment
from engine.runtime.batch import make_batch


@pytest.fixture
def memory():
    return Memory([KVLayer(1, 16, 16)], 256, 3, "f16", "f16")


def remember(memory, seq_id, n):
    rows = np.arange(n, dtype=np.int32)
    memory.place([Segment(seq_id, 0, n)], rows, rows)


def make(memory, tokens, positions=None, seq_ids=0, want="last"):
    return make_batch(tokens, positions, seq_ids, want, memory, 100)


def test_one_sequence_goes_on_where_it_stands(memory):
    remember(memory, 0, 5)
    batch = make(memory, [1, 2, 3])
    assert batch.positions.tolist() == [5, 6, 7]
    assert batch.segments == (Segment(0, 0, 3),)
    assert batch.outputs.tolist() == [2] and batch.order is None


def test_interleaved_sequences_are_grouped_and_answers_put_back(memory):
    remember(memory, 1, 4)
    batch = make(memory, [10, 20, 11, 21, 30], seq_ids=[0, 1, 0, 1, 2], want="all")
    assert batch.tokens.tolist() == [10, 11, 20, 21, 30]
    assert batch.positions.tolist() == [0, 1, 4, 5, 0]
    assert batch.segments == (Segment(0, 0, 2), Segment(1, 2, 4), Segment(2, 4, 5))
    assert batch.tokens[batch.outputs][batch.order].tolist() == [10, 20, 11, 21, 30]


def test_rows_may_be_wanted_in_any_order_and_twice(memory):
    batch = make(memory, [5, 6, 7], want=[2, 0, 2])
    assert batch.tokens[batch.outputs][batch.order].tolist() == [7, 5, 7]


def test_no_rows_may_be_wanted(memory):
    assert make(memory, [5, 6], want=[]).outputs.tolist() == []


def test_an_empty_sequence_may_begin_anywhere(memory):
    assert make(memory, [1, 2], positions=[7, 8]).positions.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"tokens": []}, "empty"),
        ({"tokens": [1, 100]}, "0 to 99.*100"),
        ({"tokens": [-1]}, "-1"),
        ({"tokens": [1.5]}, "whole"),
        ({"tokens": ["a"]}, "whole"),
        ({"tokens": [[1, 2]]}, "whole"),
        ({"tokens": 5}, "whole"),
        ({"tokens": [2**70]}, "whole"),
        ({"tokens": [1, 2], "positions": [0]}, "2 tokens but 1"),
        ({"tokens": [1, 2], "positions": [0, 2]}, "gaps"),
        ({"tokens": [1, 2], "positions": [1, 0]}, "gaps"),
        ({"tokens": [1, 2], "positions": [2**31 - 2, 2**31 - 1]}, "positions"),
        ({"tokens": [1], "seq_ids": 3}, "no sequence 3"),
        ({"tokens": [1], "seq_ids": -1}, "no sequence -1"),
        ({"tokens": [1, 2], "seq_ids": [0]}, "2 tokens but 1"),
        ({"tokens": [1, 2], "seq_ids": [0, 9]}, "no sequence 9"),
        ({"tokens": [1], "want": "first"}, "first"),
        ({"tokens": [1], "want": [1]}, "0 to 0"),
        ({"tokens": [1], "want": [-1]}, "0 to 0"),
        ({"tokens": [1], "want": [0.5]}, "whole"),
    ],
)
def test_what_cannot_be_is_refused(memory, arguments, reason):
    with pytest.raises(RequestError, match=reason):
        make(memory, **arguments)
    assert memory.stats()["pages_used"] == 0


def test_positions_must_follow_what_is_remembered(memory):
    remember(memory, 0, 5)
    with pytest.raises(RequestError, match="goes on at position 5, not at 4"):
        make(memory, [1], positions=[4])
