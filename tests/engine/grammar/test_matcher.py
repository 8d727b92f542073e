"""Matchers over tokens: masks, the way back, copies, characters cut by tokens, and triggers."""

import gc
import weakref

import numpy as np
import pytest

from engine.errors import GrammarError, InternalError
from engine.grammar import Constraint, LazyMatcher, TokenTable, Trigger
from tests.make.models import smollm2
from tests.make.small_vocab import SmallVocab

VOCAB = SmallVocab(
    [b"ab", b'":', b'{"', "é".encode(), b"\xc3\xa9x", b"<tool>", b"", b"\0a", b"ol>x"]
)
TABLE = TokenTable.of(VOCAB)
END = 256
TOOL = VOCAB.id_of(b"<tool>")
SCHEMA = {
    "type": "object",
    "properties": {"é": {"type": "string", "maxLength": 3}, "n": {"type": "integer"}},
    "required": ["é"],
}


def allowed(matcher):
    bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def walk(matcher, rng, n_steps=60):
    """Take random allowed tokens; yield before each."""
    for _ in range(n_steps):
        yield matcher
        choices = sorted(allowed(matcher) - VOCAB.eog_ids)
        if not choices:
            return
        matcher.accept(int(rng.choice(choices)))


@pytest.mark.parametrize("seed", range(3))
def test_the_mask_is_what_accepts_says(seed):
    matcher = Constraint.from_json_schema(SCHEMA).begin(TABLE)
    for here in walk(matcher, np.random.default_rng(seed)):
        assert allowed(here) == {t for t in range(VOCAB.n_tokens) if here.accepts(t)}


def test_the_mask_and_accepts_agree_where_only_one_text_fits():
    """The library would force one way to cut it into tokens."""
    matcher = Constraint.from_json_schema({"const": "abé"}).begin(TABLE)
    matcher.accept(ord('"'))
    assert allowed(matcher) == {ord("a"), VOCAB.id_of(b"ab")}
    matcher.accept(VOCAB.id_of(b"ab"))
    assert allowed(matcher) == {VOCAB.id_of("é".encode()), 0xC3}


def test_a_token_may_end_inside_a_character():
    matcher = Constraint.from_gbnf('root ::= [é] "x" | "è"').begin(TABLE)
    assert allowed(matcher) == {0xC3, VOCAB.id_of("é".encode()), VOCAB.id_of(b"\xc3\xa9x")}
    matcher.accept(0xC3)
    assert allowed(matcher) == {0xA9, 0xA8}
    assert not matcher.may_end
    matcher.accept(0xA8)
    assert matcher.may_end and allowed(matcher) == {END}


def test_ending_and_going_back():
    matcher = Constraint.from_gbnf('root ::= "a"+').begin(TABLE)
    assert not matcher.accepts(END)
    matcher.accept(ord("a"))
    assert matcher.may_end and not matcher.must_end and matcher.accepts(END)
    matcher.accept(END)
    assert matcher.must_end and allowed(matcher) == {END} and not matcher.accepts(ord("a"))
    matcher.rollback(1)
    assert matcher.accepts(ord("a"))
    matcher.rollback(1)
    assert not matcher.may_end and allowed(matcher) == {ord("a")}
    with pytest.raises(InternalError):
        matcher.rollback(1)
    with pytest.raises(InternalError):
        matcher.accept(ord("b"))


def test_rollback_is_exact():
    rng = np.random.default_rng(5)
    matcher = Constraint.from_json_schema(SCHEMA).begin(TABLE)
    masks = [allowed(here) for here in walk(matcher, rng, 20)]
    assert len(masks) == 20
    for mask in reversed(masks):
        matcher.rollback(1)
        assert allowed(matcher) == mask


def test_a_clone_goes_its_own_way():
    matcher = Constraint.from_gbnf('root ::= "ab" | "ac"').begin(TABLE)
    matcher.accept(ord("a"))
    other = matcher.clone()
    other.accept(ord("c"))
    assert other.must_end and allowed(matcher) == {ord("b"), ord("c")}
    other.rollback(2)
    assert other.accepts(ord("a"))


def test_apply_bans_in_place():
    for grammar in ('root ::= "a"', "root ::= [^a]*"):
        matcher = Constraint.from_gbnf(grammar).begin(TABLE)
        logits = np.arange(VOCAB.n_tokens, dtype=np.float32)
        matcher.apply(logits)
        kept = set(np.flatnonzero(np.isfinite(logits)).tolist())
        assert kept == allowed(matcher) - {VOCAB.n_tokens}
        assert all(logits[token] == token for token in kept)


def test_tokens_without_text_or_with_nul_never_come():
    matcher = Constraint.from_gbnf("root ::= .*").begin(TABLE)
    for piece in (b"", b"\0", b"\0a"):
        assert not matcher.accepts(VOCAB.id_of(piece))
        assert VOCAB.id_of(piece) not in allowed(matcher)
    assert matcher.accepts(TOOL)  # a special token counts as its text


def test_ids_outside_the_vocabulary():
    matcher = Constraint.from_gbnf("root ::= .*").begin(TABLE)
    assert not matcher.accepts(-1) and not matcher.accepts(10**6)


def test_a_vocabulary_without_an_end():
    vocab = SmallVocab(eog=())
    matcher = Constraint.from_gbnf('root ::= "a"').begin(TokenTable.of(vocab))
    matcher.accept(ord("a"))
    logits = np.zeros(vocab.n_tokens, np.float32)
    matcher.apply(logits)
    assert np.isneginf(logits).all() and matcher.must_end


def test_a_table_lives_as_long_as_its_vocabulary():
    vocab = SmallVocab()
    assert TokenTable.of(vocab) is TokenTable.of(vocab)
    table = weakref.ref(TokenTable.of(vocab))
    del vocab
    gc.collect()
    assert table() is None


def lazy(grammar, *triggers):
    matcher = Constraint.from_gbnf(grammar).begin(TABLE)
    return LazyMatcher(matcher, [Trigger.read(trigger) for trigger in triggers])


def feed(matcher, text):
    for byte in text.encode():
        matcher.accept(byte)


CALL = 'root ::= "<tool>" [0-9]+ "!"'


def test_nothing_is_banned_before_the_word():
    matcher = lazy(CALL, "<tool>")
    feed(matcher, "1 < 2 <tool")
    assert matcher.is_waiting and matcher.may_end and matcher.accepts(ord("z"))
    assert allowed(matcher) >= set(range(VOCAB.n_tokens))
    feed(matcher, ">")
    assert not matcher.is_waiting and allowed(matcher) == set(b"0123456789")
    feed(matcher, "42!")
    assert matcher.must_end


def test_a_word_inside_a_token_hands_over_only_its_part():
    matcher = lazy('root ::= "ol>x" "y"', {"type": "word", "value": "ol>x"})
    feed(matcher, "<to")
    matcher.accept(VOCAB.id_of(b"ol>x"))
    assert allowed(matcher) == {ord("y")}


def test_a_pattern_hands_over_its_first_group():
    matcher = lazy('root ::= "{" [a-z]+ "}"', {"type": "pattern", "value": "call:\\s*(\\{)"})
    feed(matcher, "I call:  {")
    assert not matcher.is_waiting
    feed(matcher, "abc}")
    assert matcher.must_end


def test_a_full_pattern_must_match_all():
    matcher = lazy('root ::= "é" "y"*', {"type": "pattern_full", "value": "x*(é)"})
    feed(matcher, "yé")
    assert matcher.is_waiting
    matcher = lazy('root ::= "é" "y"*', {"type": "pattern_full", "value": "x*(é)"})
    feed(matcher, "xxé")
    assert not matcher.is_waiting and matcher.may_end


def test_a_token_triggers_by_its_id_or_its_text():
    matcher = lazy(f"root ::= <[{TOOL}]> [0-9]", {"type": "token", "token": TOOL})
    feed(matcher, "hm <tool>")
    assert matcher.is_waiting
    matcher.accept(TOOL)
    assert allowed(matcher) == set(b"0123456789")
    matcher = lazy(CALL, {"type": 0, "value": TOOL})
    matcher.accept(TOOL)
    assert allowed(matcher) == set(b"0123456789")


def test_a_trigger_that_the_grammar_does_not_begin_with():
    matcher = lazy('root ::= "x"', "<tool>")
    with pytest.raises(GrammarError, match="does not fit"):
        feed(matcher, "<tool>")


def test_back_to_before_the_trigger():
    matcher = lazy(CALL, "<tool>")
    feed(matcher, "a<tool>12")
    other = matcher.clone()
    matcher.rollback(3)
    assert matcher.is_waiting and matcher.accepts(ord("z"))
    feed(matcher, ">7!")
    assert matcher.must_end and not other.must_end
    assert allowed(other) == set(b"0123456789!")
    matcher.rollback(9)
    assert matcher.is_waiting
    with pytest.raises(InternalError):
        matcher.rollback(1)


@pytest.mark.parametrize(
    "trigger, message",
    [
        ({"type": "wrd", "value": "a"}, "no trigger “wrd”.*Did you mean “word”"),
        ({"type": "pattern", "value": "("}, "no regular expression"),
        ({"type": "token", "value": "a"}, "none for a trigger"),
        (7, "needs “type” and “value”"),
    ],
)
def test_bad_triggers(trigger, message):
    with pytest.raises(GrammarError, match=message):
        lazy(CALL, trigger)


def test_a_lazy_grammar_needs_a_trigger():
    with pytest.raises(GrammarError, match="at least one trigger"):
        lazy(CALL)


def test_a_hostile_trigger_ends():
    matcher = lazy(CALL, {"type": "pattern", "value": "(a|aa)+(b|c)d"})
    with pytest.raises(GrammarError, match="takes too long"):
        feed(matcher, "a" * 40)


def test_a_real_vocabulary():
    """49,152 byte-level tokens: the mask is what accepts says, at every step of a JSON text."""
    from engine.gguf import GGUF
    from engine.text import Vocab

    vocab = Vocab.from_gguf(GGUF.open(smollm2()))
    matcher = Constraint.from_json_schema(SCHEMA).begin(TokenTable.of(vocab))
    rng = np.random.default_rng(0)
    for token in vocab.tokenize('{"é": "ü🙂", "n": -12, "x": [1e5]}', add_special=False):
        found = allowed(matcher)
        assert token in found
        for other in rng.integers(0, vocab.n_tokens, 200).tolist():
            assert (other in found) == matcher.accepts(other)
        matcher.accept(token)
    assert matcher.must_end and allowed(matcher) == set(vocab.eog_ids)
