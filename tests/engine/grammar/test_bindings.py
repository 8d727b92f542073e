"""The library behind the grammars: laid out as expected, freed, and never in anybody's way."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from engine.errors import GrammarError, InternalError
from engine.grammar import Constraint, TokenTable, bindings
from tests.make.resident import resident
from tests.make.small_vocab import SmallVocab


def words(n):
    """Tokens of made-up words, as many as a large vocabulary has."""
    letters = "etaoinshrdlu"
    made = []
    for i in range(n):
        text, rest = "", i
        while rest or not text:
            rest, letter = divmod(rest, len(letters))
            text += letters[letter]
        made.append((" " if i % 2 else "").encode() + text.encode())
    return made


class Stream:
    """Another thread that takes a step a millisecond, as an answer does, until it is left."""

    def __enter__(self):
        self.steps, self._is_over = [], threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._is_over.is_set():
            time.sleep(0.001)
            self.steps.append(time.perf_counter())

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()


def test_others_go_on_while_the_table_of_a_vocabulary_is_built(monkeypatch):
    """Once the interpreter was held for all of it; now it is given away at least every 5 ms."""
    began, vocab = [], SmallVocab(words(100_000))
    plain = bindings._library().llg_new_tokenizer_v2

    def build(*arguments):
        began.append(time.perf_counter())
        handle = plain(*arguments)
        began.append(time.perf_counter())
        return handle

    monkeypatch.setattr(bindings._library(), "llg_new_tokenizer_v2", build)
    with Stream() as stream:
        TokenTable(vocab)
    seconds = began[1] - began[0]
    within = [step for step in stream.steps if began[0] < step < began[1]]
    assert seconds > 0.05, "too fast to tell"
    assert len(within) > 100 * seconds  # 1000 a second when nothing else runs


def test_memory_is_given_back():
    """A table of 100,000 tokens and 2,000 matchers are gone when nobody uses them."""
    constraint = Constraint.from_regex("[a-z]{1,500}")
    table = TokenTable(SmallVocab())
    made = constraint.begin(table)
    before = 0
    for round_ in range(6):
        for _ in range(400):
            made.clone().accept(ord("a"))
        TokenTable(SmallVocab(words(20_000)))
        gc.collect()
        if round_ == 1:
            before = resident()
    assert resident() - before < 20e6


def test_a_table_outlives_its_matchers_not_the_other_way_round():
    table = TokenTable(SmallVocab())
    tokenizer = weakref.ref(table.tokenizer)
    matcher = Constraint.from_regex("ab").begin(table)
    state = matcher._state
    del table, matcher
    gc.collect()
    assert tokenizer() is not None
    mask = np.zeros(9, np.uint32)
    state.mask(mask)
    assert mask[3] == 1 << (ord("a") - 96)
    del state
    gc.collect()
    assert tokenizer() is None


@pytest.fixture
def other_library(monkeypatch):
    bindings._library.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    bindings._library.cache_clear()


def test_another_version_of_the_library_is_refused(other_library):
    other_library.setitem(bindings._FUNCTIONS, "llg_of_the_future", (None, []))
    with pytest.raises(InternalError, match="install a version from"):
        bindings._library()


def test_another_layout_of_the_library_is_refused(other_library):

    moved = [(n, t) for n, t in bindings._Start._fields_ if n != "log_buffer_level"]
    layout = type("Moved", (bindings.ctypes.Structure,), {"_fields_": moved})
    other_library.setattr(bindings, "_Start", layout)
    with pytest.raises(InternalError, match="install a version from"):
        bindings._library()


def test_a_vocabulary_that_the_library_refuses_is_an_error_with_its_cause():
    with pytest.raises(GrammarError, match="out of range"):
        bindings.Tokenizer([b"a", b"b"], [7])


def test_a_nul_in_the_text_of_a_grammar_would_cut_it_short():
    with pytest.raises(InternalError, match="NUL"):
        bindings.State.begin(TokenTable(SmallVocab()).tokenizer, "start: /a\0/", bindings.Limits())


def test_a_call_that_ends_in_error_says_so_for_ever():
    state = Constraint.from_regex("ab").begin(TokenTable(SmallVocab()))._state
    assert not state.is_error and state.error == ""
    assert not state.consume([ord("x")])
    assert state.is_error and state.error and state.is_stopped and not state.is_accepting
    assert not state.consume([ord("a")]) and not state.rollback(1) and state.n_fitting([97]) == -1
