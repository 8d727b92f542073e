"""The stream is the text, whatever the model says: any pieces, stop words, limits, any split."""

import codecs

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine.client.client import EngineClient
from tests.fakes.model import BOS, EOS, N_VOCAB, ByteVocab, loaded

LETTERS = st.sampled_from("abé漢😀\n \t")
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=3)


class PieceVocab(ByteVocab):
    """Token i is `pieces[i]`: any bytes, also parts of characters."""

    pieces = ()

    def piece(self, token, special=True):
        return self.pieces[token] if token < len(self.pieces) else super().piece(token, special)


@pytest.fixture(scope="module")
def speaker():
    """A client, and the vocabulary whose pieces it says in order."""
    vocab = PieceVocab()

    def logits_of(tokens):
        row = np.zeros(N_VOCAB, np.float32)
        n_said = len(tokens) - 1
        row[n_said if n_said < len(vocab.pieces) else EOS] = 1
        return row

    model = loaded(logits_of)
    model.vocab = vocab
    with EngineClient.over(lambda progress: model, 1) as client:
        yield client, vocab


@st.composite
def pieces(draw):
    """Draw a text as bytes cut anywhere, now and then with bytes that are no text."""
    encoded = draw(st.text(LETTERS, max_size=30)).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(encoded)))
        encoded = encoded[:at] + draw(st.binary(max_size=3)) + encoded[at:]
    cuts = sorted(draw(st.lists(st.integers(0, len(encoded)), max_size=12)))
    edges = [0, *cuts, len(encoded)]
    return [encoded[a:b] for a, b in zip(edges, edges[1:], strict=False)]


def expected(said, words, n_predict):
    """The text and the stop type, worked out from the whole text after every token."""
    text = ""
    for n in range(len(said) + 2):
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(b"".join(said[:n]))
        found = [(text.find(word), i) for i, word in enumerate(words) if word in text]
        if found:
            at, i = min(found)
            return text[:at], "word", words[i]
        if n > len(said):
            return text, "eos", ""
        if n == n_predict:
            return text, "limit", ""
    raise AssertionError("it always ends")


@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(said=pieces(), words=WORDS, n_predict=st.integers(-1, 14))
def test_the_stream_is_the_text_and_nothing_is_lost(speaker, said, words, n_predict):
    client, vocab = speaker
    vocab.pieces = said
    request = engine.CompletionRequest(
        [BOS], temperature=0, stop=words, n_predict=n_predict, cache_prompt=False
    )
    events = list(client.submit(request))
    last = events[-1]
    assert isinstance(last, engine.Finished)
    text, stop_type, word = expected(said, words, n_predict)
    assert (last.text, last.stop_type, last.stop_word) == (text, stop_type, word)
    deltas = [event for event in events if isinstance(event, engine.TextDelta)]
    assert "".join(delta.text for delta in deltas) == text
    assert [token for delta in deltas for token in delta.tokens] == list(last.tokens)
    whole = b"".join(said)
    if "\ufffd" not in whole.decode("utf-8", "replace"):
        assert "\ufffd" not in text
    heard = ""
    for delta in deltas:
        heard += delta.text
        assert text.startswith(heard)
        assert not any(word in heard for word in words)
