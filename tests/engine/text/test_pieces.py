"""Pieces: what each kind of token stands for, and how a whole text is put together."""

import pytest

from engine.text import TextDecoder
from tests.make import vocab as make

FURTHER = {
    "<ctl>": make.CONTROL,
    "<unk>": make.UNKNOWN,
    "<usr>": make.USER_DEFINED,
    "<gone>": make.UNUSED,
    "<0x0A>": make.BYTE,
    "Ġ日": make.NORMAL,
    "Ġé": make.NORMAL,
}


def _pieces(vocab, special):
    return [vocab.piece(vocab.find(text), special) for text in FURTHER]


def test_byte_level_pieces():
    vocab = make.vocab(make.byte_pairs(["a b"], FURTHER))
    odd = "[UNK_BYTE_0xe697a5Ġ日]".encode()
    shown = [b"<ctl>", b"<unk>", b"<usr>", b"", b"\n", b" " + odd, b" \xe9"]
    assert _pieces(vocab, special=True) == shown
    assert _pieces(vocab, special=False) == [b"", b"", *shown[2:]]
    assert [vocab.piece(token) for token in range(256)] == [bytes((v,)) for v in range(256)]


def test_sentence_pieces():
    further = FURTHER | {"<unk>": make.UNKNOWN, "<0x0A>": make.BYTE, "▁é▁": make.NORMAL}
    vocab = make.vocab(make.sentence_pieces({"▁a": 0.0}, further))
    assert vocab.piece(vocab.find("▁é▁")) == " é ".encode()
    assert vocab.piece(vocab.find("Ġ日")) == "Ġ日".encode()
    assert vocab.piece(vocab.find("<0x0A>")) == b"\n"
    assert vocab.find("no such piece") == -1


@pytest.mark.parametrize("special", [True, False])
def test_all_pieces_in_one_are_each_of_them(special):
    for vocab in (
        make.vocab(make.byte_pairs(["a b"], FURTHER)),
        make.vocab(make.sentence_pieces({"▁a": 0.0}, FURTHER | {"▁é▁": make.NORMAL})),
        make.vocab(make.byte_pairs(["a b"], {"Ġé": make.NORMAL})),
    ):
        whole, starts = vocab.joined_pieces(special)
        assert len(starts) == vocab.n_tokens + 1 and starts[-1] == len(whole)
        found = [whole[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
        assert found == [vocab.piece(token, special) for token in range(vocab.n_tokens)]


def test_a_text_loses_the_space_that_tokenizing_added():
    vocab = make.vocab(make.sentence_pieces({"▁a": 0.0, "▁": -1.0}))
    ids = [vocab.find("▁a"), vocab.find("▁a")]
    assert vocab.detokenize(ids) == b"a a"
    assert b"".join(map(vocab.piece, ids)) == b" a a"
    assert vocab.detokenize([]) == b""


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a . b , c ! d ?", "a. b, c! d?"),
        ("it 's we 're I 'm you 've he 'll", "it's we're I'm you've he 'll"),
        ("a ' b", "a'b"),
    ],
)
def test_spaces_are_cleaned_where_the_vocabulary_says_so(text, cleaned):
    for pre, expected in (("gpt-2", cleaned), ("smollm", text)):
        vocab = make.vocab(make.byte_pairs(["a b"], pre=pre))
        ids = vocab.tokenize(text)
        assert vocab.detokenize(ids).decode() == expected
        assert b"".join(map(vocab.piece, ids)).decode() == text


def test_a_stream_never_shows_half_a_character():
    decoder = TextDecoder()
    raw = "aé日😀\u200d".encode()
    shown = [decoder.feed(raw[i : i + 1]) for i in range(len(raw))]
    assert shown == ["a", "", "é", "", "", "日", "", "", "", "😀", "", "", "\u200d"]
    assert decoder.flush() == ""


def test_a_stream_shows_what_is_no_text_and_goes_on():
    decoder = TextDecoder()
    assert decoder.feed(b"\xffa\xc3") == "\ufffda" and decoder.n_waiting == 1
    assert decoder.feed(b"b") == "\ufffdb" and decoder.n_waiting == 0
    assert decoder.feed("日".encode()[:2]) == "" and decoder.n_waiting == 2
    assert decoder.flush() == "\ufffd" and decoder.n_waiting == 0
    assert decoder.feed(b"c") == "c"
