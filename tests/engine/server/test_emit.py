"""The stream is the text: stop words, cut characters, indents, in every split into tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.server.emit import TextEmitter

LETTERS = st.sampled_from("abé漢😀\n \t")
TEXTS = st.text(LETTERS, max_size=40)
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=3)


def stream(pieces, stop_words=(), n_indent=0):
    emitter = TextEmitter(stop_words, n_indent)
    parts = []
    for piece in pieces:
        parts.append(emitter.feed(piece))
        if emitter.is_cut:
            break
    parts.append(emitter.finish())
    return parts, emitter


@st.composite
def split_texts(draw):
    """Draw a text as bytes cut anywhere, also inside characters."""
    encoded = draw(TEXTS).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(encoded)), max_size=12)))
    edges = [0, *cuts, len(encoded)]
    return [encoded[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@given(split_texts())
def test_without_stop_words_the_stream_is_the_text(pieces):
    parts, emitter = stream(pieces)
    assert "".join(parts) == emitter.text == b"".join(pieces).decode()
    assert emitter.held == ""


@settings(max_examples=300)
@given(split_texts(), WORDS)
def test_the_text_ends_before_the_first_completed_stop_word(pieces, words):
    parts, emitter = stream(pieces, words)
    assert "".join(parts) == emitter.text
    plain = b"".join(pieces).decode()
    assert plain.startswith(emitter.text)
    assert not any(word in emitter.text for word in words)
    if emitter.stop_word:
        assert plain.startswith(emitter.text + emitter.stop_word)
    else:
        assert emitter.text == plain
        assert not any(word in plain for word in words)


@given(split_texts(), WORDS)
def test_what_is_handed_out_can_never_become_part_of_a_stop_word(pieces, words):
    emitter = TextEmitter(words)
    for piece in pieces:
        emitter.feed(piece)
        for word in words:
            for n in range(1, len(word)):
                begins_in_text = emitter.text.endswith(word[:n]) and not emitter.is_cut
                assert not begins_in_text or not word.startswith(word[:n] + emitter.held)


@given(split_texts(), st.integers(1, 4))
def test_an_indent_rule_cuts_the_same_place_in_every_split(pieces, n_indent):
    whole = b"".join(pieces)
    parts, emitter = stream(pieces, n_indent=n_indent)
    _, in_one = stream([whole], n_indent=n_indent)
    assert "".join(parts) == emitter.text == in_one.text
    for line in emitter.text.split("\n")[1:-1]:
        assert len(line) - len(line.lstrip(" \t")) >= n_indent


def test_text_held_for_a_stop_word_is_delivered_at_the_end():
    parts, _ = stream([b"my na", b"me is", b" STO"], ["STOP"])
    assert parts == ["my na", "me is", " ", "STO"]


def test_only_the_possible_beginning_of_a_stop_word_is_held():
    emitter = TextEmitter(["<end>"])
    assert emitter.feed(b"hello <e") == "hello "
    assert emitter.feed(b"m>") == "<em>"
    assert emitter.feed(b"x<end>y") == "x"
    assert (emitter.stop_word, emitter.is_cut, emitter.feed(b"more")) == ("<end>", True, "")


def test_a_cut_character_waits_and_is_dropped_at_the_very_end():
    whole = "漢".encode()
    parts, emitter = stream([b"a" + whole[:1], whole[1:2], whole[2:] + whole[:2]])
    assert parts == ["a", "", "漢", ""]
    assert "\ufffd" not in emitter.text


def test_bytes_that_are_no_text_are_marked_but_do_not_stop_the_stream():
    parts, _ = stream([b"a\xff", b"b"])
    assert parts == ["a\ufffd", "b", ""]


@pytest.mark.parametrize(
    ("words", "stop_word", "text"),
    [(["cd", "bc"], "bc", "a"), (["b", "bc"], "b", "a"), (["bc", "b"], "bc", "a")],
)
def test_the_earliest_word_wins_then_the_first_listed(words, stop_word, text):
    _, emitter = stream([b"abcd"], words)
    assert (emitter.stop_word, emitter.text) == (stop_word, text)


def test_other_stop_words_count_from_the_next_token_on():
    emitter = TextEmitter(["X"])
    emitter.feed(b"a")
    emitter.use_stop_words(["Y"])
    assert emitter.feed(b"XbYc") == "Xb"
