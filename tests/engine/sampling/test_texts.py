"""The texts behind DRY and infill: found by plain search, at once, and not kept for ever."""

import time

import numpy as np
import pytest

from engine.errors import RequestError
from engine.params import SamplingParams
from engine.sampling import SamplerChain
from engine.sampling import texts as module
from engine.sampling.texts import TokenTexts, breakers_of, find_tails, texts_of
from tests.fakes.numbered_vocab import NumberedVocab


def random_vocab(seed, n=300):
    rng = np.random.default_rng(seed)
    texts = [bytes(rng.choice(list(b"ab\n"), size=rng.integers(0, 5))) for _ in range(n)]
    return NumberedVocab(n, texts=texts), texts


@pytest.mark.parametrize("seed", range(5))
def test_tokens_that_hold_or_end_with_a_text(seed):
    vocab, pieces = random_vocab(seed)
    texts = TokenTexts(vocab, special=True)
    for text in (b"a", b"\n", b"ab", b"ba\n", b"aaaa", b"abab\n", b"c", b"a" * 3000):
        assert texts.holding(text).tolist() == [i for i, p in enumerate(pieces) if text in p]
        assert texts.ending(text).tolist() == [i for i, p in enumerate(pieces) if p.endswith(text)]


def test_a_vocabulary_without_any_text():
    texts = TokenTexts(NumberedVocab(4, texts=[b""] * 4), special=True)
    assert texts.holding(b"a").tolist() == texts.ending(b"a").tolist() == []


def test_breakers_are_cut_to_forty_bytes_and_tails_to_twenty_tokens():
    vocab = NumberedVocab(3, texts=[b"x", b"y", b"x" * 40])
    tails = find_tails(vocab, ("x" * 100,))
    assert tails[2] == [()]  # the whole of what is left of the breaker
    assert max(map(len, tails[0])) == 20 and set(sum(tails[0], ())) <= {0, 2}


def test_what_is_kept_is_bounded():
    vocab = NumberedVocab(20)
    for i in range(200):
        breakers_of(vocab, (f"<{i}>",))
        assert texts_of(vocab, special=True) is texts_of(vocab, special=True)
    assert len(module._KNOWN[vocab]) <= module.MAX_KNOWN
    again = breakers_of(vocab, ("<199>",))
    assert breakers_of(vocab, ("<199>",)) is again


def test_a_chain_outlives_what_was_kept_for_it():
    vocab = NumberedVocab(20, eog_ids=[3])
    options = dict(samplers=["dry", "infill"], dry_multiplier=9.0, dry_sequence_breakers=["<5>"])
    chain = SamplerChain(SamplingParams(seed=1, **options), vocab)
    chain.accept_all([5, 1, 2, 3, 1, 2])
    row = np.linspace(0, 1, 20, dtype=np.float32)
    chain.apply(row)
    before = chain.candidates()
    for i in range(50):
        breakers_of(vocab, (f"{i}",))
        np.full(1000, -1)
    chain.apply(row)
    assert chain.candidates().logits.tolist() == before.logits.tolist()


def test_too_many_breakers_are_refused_and_the_most_allowed_ones_take_no_time():
    vocab, _ = random_vocab(1)
    options = dict(dry_multiplier=1.0, dry_sequence_breakers=[f"{i:040}" for i in range(64)])
    begun = time.thread_time()
    chain = SamplerChain(SamplingParams(**options), vocab)
    assert time.thread_time() - begun < 1
    with pytest.raises(RequestError, match="65 texts, more than 64"):
        chain.update(dry_sequence_breakers=[f"{i}" for i in range(65)])


@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_a_sampler_that_needs_all_texts_is_switched_on_within_one_step(name):
    """During an answer that happens on the thread that also serves every other answer."""
    from engine.gguf import GGUF
    from engine.text import Vocab
    from tests.make import models

    vocab = Vocab.from_gguf(GGUF.open(getattr(models, name)()))
    chain = SamplerChain(SamplingParams(seed=1), vocab)
    vocab.piece(0)
    for change in ({"dry_multiplier": 0.8}, {"samplers": ["infill"]}):
        begun = time.thread_time()
        chain.update(**change)
        assert time.thread_time() - begun < 0.05, change
