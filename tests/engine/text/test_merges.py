"""The merge kernel against the definition, on vocabularies drawn at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.strings import string_array
from tests.make import vocab as make
from tests.reference.text import merge_by_rank, merge_by_score


def _joins(n):
    """Return a strategy for n joins, each of two symbols that exist by then."""

    def grow(choices):
        symbols, joins = list("abc"), []
        for a, b in choices:
            left, right = symbols[a % len(symbols)], symbols[b % len(symbols)]
            if len(left + right) <= 12 and (left, right) not in joins:
                joins.append((left, right))
                if left + right not in symbols:
                    symbols.append(left + right)
        return joins

    number = st.integers(0, 1 << 16)
    return st.lists(st.tuples(number, number), max_size=n).map(grow)


@settings(max_examples=60, deadline=None)
@given(joins=_joins(25), text=st.text("abc", max_size=40))
def test_byte_pairs_merge_by_rank(joins, text):
    vocab = make.vocab(make.byte_pairs([" ".join(join) for join in joins]))
    symbols = merge_by_rank(text, {join: rank for rank, join in enumerate(joins)})
    ids = vocab.tokenize(text, add_special=False)
    assert [vocab.text(token).decode() for token in ids] == symbols


@settings(max_examples=60, deadline=None)
@given(
    scored=st.dictionaries(
        st.text("abé▁", min_size=2, max_size=5), st.integers(-4, 4), max_size=25
    ),
    text=st.text("abé ", max_size=40),
)
def test_sentence_pieces_merge_by_score(scored, text):
    scores = dict.fromkeys("abé▁", -9.0) | scored
    vocab = make.vocab(make.sentence_pieces(scores, add_space_prefix=False))
    symbols = merge_by_score(text.replace(" ", "▁"), scores)
    ids = vocab.tokenize(text, add_special=False)
    assert [vocab.text(token).decode() for token in ids] == symbols


def test_equal_ranks_and_scores_go_from_left_to_right():
    vocab = make.vocab(make.byte_pairs(["a a"]))
    assert [vocab.text(t) for t in vocab.tokenize("aaaaa")] == [b"aa", b"aa", b"a"]
    scored = {"a": 0.0, "aa": -0.0, "ab": 0.0, "b": 0.0}
    vocab = make.vocab(make.sentence_pieces(scored, add_space_prefix=False))
    assert [vocab.text(t) for t in vocab.tokenize("aab", add_special=False)] == [b"aa", b"b"]


def test_a_long_word_is_merged_like_a_short_one():
    vocab = make.vocab(make.byte_pairs(["a b", "ab ab", "abab abab"]))
    for n in (1, 100, 5000):
        ids = vocab.tokenize("abababab" * n)
        assert ids == [ids[0]] * n and vocab.text(ids[0]) == b"abababab"


def test_bytes_stand_in_for_what_no_token_covers():
    vocab = make.vocab(make.sentence_pieces({"a": 0.0}, add_space_prefix=False))
    ids = vocab.tokenize("aé\n", add_special=False)
    assert [vocab.text(t) for t in ids] == [b"a", b"<0xC3>", b"<0xA9>", b"<0x0A>"]
    assert vocab.detokenize(ids).decode() == "aé\n"


def test_a_vocabulary_without_bytes_falls_back_to_unknown():
    tokens = {"<unk>": make.UNKNOWN, "<s>": make.CONTROL, "</s>": make.CONTROL, "a": make.NORMAL}
    scores = np.zeros(4, np.float32)
    vocab = make.vocab(make.metadata("llama", tokens, scores=scores, add_space_prefix=False))
    assert vocab.tokenize("aéa") == [1, 3, 0, 0, 3]


def test_a_merge_into_a_text_that_is_no_token_falls_apart_into_bytes():
    metadata = make.byte_pairs(["a b", "b c"])
    tokens = dict.fromkeys((*make.BYTE_CHARS, "bc"), make.NORMAL)
    metadata |= make.metadata("gpt2", tokens, pre="gpt-2")
    vocab = make.vocab(metadata)
    assert [vocab.text(t) for t in vocab.tokenize("abcbc")] == [b"a", b"b", b"c", b"bc"]


def test_merges_that_name_unknown_tokens_do_nothing():
    merges = string_array([b"zz zz", b"a b", b"nospace", b" ", b"", b"a ", b" a", b"a b c"])
    vocab = make.vocab(make.byte_pairs(["a b"]) | {"tokenizer.ggml.merges": merges})
    ids = vocab.tokenize("zzab c")
    assert [vocab.text(token).decode() for token in ids] == ["z", "z", "ab", "Ġ", "c"]


def test_a_whole_word_that_is_a_token_needs_no_merge():
    further = {"hello": make.NORMAL, "Ġhello": make.NORMAL}
    vocab = make.vocab(make.byte_pairs(["h e"], further, pre="llama-bpe"))
    assert [vocab.text(t) for t in vocab.tokenize("hello hello", add_special=False)] == [
        b"hello",
        "Ġhello".encode(),
    ]
    vocab = make.vocab(make.byte_pairs(["h e"], further))
    assert vocab.text(vocab.tokenize("hello")[0]) == b"he"


def test_gemma4_takes_newlines_whole():
    vocab = make.vocab(
        make.byte_pairs(["a b"], {"\n\n\n": make.NORMAL}, pre="gemma4", bos_token_id=0)
    )
    ids = vocab.tokenize("ab\n\n\nab ab\n\n", add_special=False)
    assert [vocab.text(t).decode() for t in ids] == ["ab", "\n\n\n", "ab", "▁", "ab", "\n", "\n"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf"), 1e38])
def test_any_score_has_an_order(score):
    scored = {"a": 0.0, "b": 0.0, "ab": score, "ba": 0.5}
    vocab = make.vocab(make.sentence_pieces(scored, add_space_prefix=False))
    texts = [vocab.text(t) for t in vocab.tokenize("aba", add_special=False)]
    assert texts == ([b"ab", b"a"] if score > 0.5 else [b"a", b"ba"])
