"""Thousands of random tasks, cancelled, changed, failing: each ends once, none lies, none leaks."""

import codecs
import os
import random
import threading
import time
from functools import cache

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError, InternalError, MachineError, StateFileError
from engine.server.loop import Keeping
from tests.fakes.model import BOS, EOS, N_VOCAB, ScriptedContext, loaded
from tests.fakes.paged import PagedContext

ALPHABET = [*b"ab c\n", *"é漢".encode(), EOS]
N_SLOTS = 3
FORKS = (3, 4)
N_CTX = 96  # tokens of one conversation
N_ROUNDS = int(os.environ.get("INGLENOOK_SOAK_ROUNDS", "220"))

EXPECTED_FAILURES = (
    "broken",
    "this machine has none",
    "The engine made a mistake (ValueError: odd).",
    "There is no free cell in memory.",
    "The context is full",
    "All 256 cells",
    "more tokens do not fit",
    "full for once",
    "The prompt has",
)
EXPECTED_ERRORS = (*EXPECTED_FAILURES, "does not fit", "unreadable", "disk full", "No such file")


@cache
def logits_of(tokens):
    row = np.full(N_VOCAB, -10.0, np.float32)
    row[ALPHABET] = np.random.default_rng(tokens).normal(size=len(ALPHABET))
    row.setflags(write=False)
    return row


def greedy(prompt, n):
    """What the model says after a prompt, worked out without an engine."""
    said = []
    while len(said) < n and (not said or said[-1] != EOS):
        said.append(int(np.argmax(logits_of((*prompt, *said)))))
    return said


class Harm:
    """Failures of a machine that is having a bad day, drawn from a generator of its own."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.is_on = True
        self.slots = lambda: ()

    def strikes(self, chance):
        return self.is_on and self.rng.random() < chance

    def do(self, context):
        """Let a context fail now and then in everything that it does."""
        self.context, context.before_decode = context, self._before_decode
        for name, chance, error in (
            ("snapshot_sequence", 0.03, MachineError("this machine has none")),
            ("read_saved", 0.1, StateFileError("unreadable")),
            ("restore_saved", 0.1, StateFileError("The saved memory does not fit.")),
            ("peek_saved", 0.1, StateFileError("unreadable")),
        ):
            setattr(context, name, self._failing(getattr(context, name), chance, error))
        snapshot_of = context.snapshot_sequence

        def snapshot(seq_id):
            held = snapshot_of(seq_id)
            held.write = self._failing(held.write, 0.1, MachineError("disk full"))
            return held

        context.snapshot_sequence = snapshot

    def sync(self, descriptor):
        """Bring nothing to the disk: some 140 times in all, a busy machine takes a second each."""
        if self.strikes(0.05):
            raise OSError(28, "disk full")

    def _failing(self, act, chance, error):
        def maybe(*given, **options):
            if self.strikes(chance):
                raise error
            return act(*given, **options)

        return maybe

    def _before_decode(self, tokens, seq_ids):
        for slot in self.slots():
            held = self.context.memory.tokens(slot.id)
            assert slot.tokens == held, f"slot {slot.id} believes in {slot.tokens}, not {held}"
        if self.strikes(0.015):
            raise self.rng.choice(
                [InternalError("broken"), ValueError("odd"), MachineError("this machine has none")]
            )
        if len(tokens) > 1 and self.strikes(0.04):
            raise ContextFullError("full for once")


class Soak:
    """One client over one kind of memory, and everything that is asked of it."""

    def __init__(self, seed, make_context, folder, sleeps, shifts):
        self.rng = random.Random(seed)
        self.harm = Harm(seed + 100)
        self.contexts = []
        self.sleeps, self.shifts = sleeps, shifts
        self.make_context = make_context
        self.folder = folder
        texts = [bytes(self.rng.choices(ALPHABET[:-1], k=60)) for _ in range(4)]
        self.texts = [*texts, texts[0][:30] + texts[1][:30], texts[0][:45] + texts[2][:15]]
        self.asked, self.kept = [], []
        keeping = Keeping(1 << 14, folder / "cache", 100_000, 0.004 if sleeps else -1)
        self.client = EngineClient.over(self.load, N_SLOTS, keeping=keeping)
        self.harm.slots = lambda: self.client._loop._slots

    def load(self, progress):
        context = self.make_context(lambda tokens: logits_of(tuple(tokens)))
        self.harm.do(context)
        self.contexts.append(context)
        model = loaded(None, n_ctx=N_CTX, n_batch=24, context=context, forks=FORKS)
        model.shifts_context = self.shifts
        return model

    def run(self, n_rounds):
        acts = [
            *[self.submit] * 12,
            *[self.cancel, self.change] * 2,
            *[self.wait, self.keep, self.keep, self.decide, self.embed, self.give],
            *[self.save, self.restore, self.erase, self.look, self.rest],
        ]
        for i in range(n_rounds):
            try:
                (self.rest if i == n_rounds // 2 else self.rng.choice(acts))()
            except engine.EngineError as error:
                assert any(words in str(error) for words in EXPECTED_ERRORS), repr(error)

    def path(self):
        return self.folder / "cache" / f"{self.rng.randrange(5)}.safetensors"

    def prompt(self):
        return [BOS, *self.rng.choice(self.texts)[: self.rng.randint(1, 60)]]

    def submit(self):
        rng = self.rng
        options = {"n_predict": rng.choice([0, 1, 3, 8, 20]), "n": rng.choice([1, 1, 1, 2])}
        if rng.random() < 0.3:
            options["stop"] = rng.sample(["a", "b c", "é", "\n", "ab"], 2)
        if rng.random() < 0.2:
            options["id_slot"] = rng.randrange(N_SLOTS)
        if rng.random() < 0.2:
            options["cache_prompt"] = False
        if rng.random() < 0.2:
            options["n_cache_reuse"] = 3
        request = engine.CompletionRequest(self.prompt(), temperature=0, **options)
        self.asked.append((request, self.client.submit(request)))

    def cancel(self):
        if self.asked:
            self.rng.choice(self.asked)[1].cancel()

    def change(self):
        if self.asked:
            self.rng.choice(self.asked)[1].update(n_predict=self.rng.randint(1, 9))

    def wait(self):
        if self.asked:
            assert self.rng.choice(self.asked)[1].wait(20), "an answer does not end"

    def keep(self):
        self.kept.append(self.client.keep(self.prompt(), self.path()))

    def give(self):
        """Give a conversation away and take it over again."""
        gift = self.folder / "gift"
        if self.client.export_memory(self.prompt(), gift).result(10).n_tokens:
            self.kept.append(self.client.import_memory(gift, self.path()))

    def decide(self):
        prompt, options = self.prompt(), ["a", "b c", "ab", "\n"]
        decision = self.client.decide(prompt, options)
        rows = logits_of(tuple(prompt)).astype(np.float64)
        expected = rows[10] - np.log(np.exp(rows).sum())
        assert decision.logprobs[3] == pytest.approx(expected, abs=1e-3)

    def embed(self):
        assert len(self.client.embed([self.prompt() for _ in range(3)])) == 3

    def save(self):
        self.client.save_slot(self.rng.randrange(N_SLOTS), self.path())

    def restore(self):
        self.client.restore_slot(self.rng.randrange(N_SLOTS), self.path())

    def erase(self):
        self.client.erase_slot(self.rng.randrange(N_SLOTS))

    def look(self):
        known = self.client.known_prefix(self.prompt())
        assert 0 <= known.n_tokens <= known.n_prompt
        assert all(slot.n_tokens <= N_CTX for slot in self.client.slots())
        assert self.client.metrics().requests_processing <= N_SLOTS

    def rest(self):
        for _, handle in self.asked:
            assert handle.wait(20), "an answer does not end"
        until = time.monotonic() + 20
        while self.sleeps and self.client.state != "asleep":
            assert time.monotonic() < until, self.client.state
            time.sleep(0.002)

    def check(self):
        """Hold everything that was answered against the model, and memory against its books."""
        for request, handle in self.asked:
            check_answers(request, list(handle), self.shifts)
        self.harm.is_on = False
        for done in self.kept:
            if (error := done.exception(10)) is not None:
                assert any(words in str(error) for words in EXPECTED_ERRORS), repr(error)
        last = self.client.submit(engine.CompletionRequest([BOS, *b"ab"], n_predict=1)).result()
        assert len(last.tokens) == 1
        metrics = self.client.metrics()
        assert (metrics.requests_processing, metrics.requests_deferred) == (0, 0)
        self.client.close()
        for context in self.contexts:
            memory = context.memory
            memory.check_integrity()
            assert not memory.snapshots
            assert [memory.tokens(fork) for fork in FORKS] == [[], []]
            assert memory.stats()["bytes_kept"] == 0


def check_answers(request, events, shifts):
    """Every answer ends once; its stream is its text; its tokens are what the model says."""
    for index in range(request.n):
        mine = [event for event in events if event.index == index]
        finals = [e for e in mine if isinstance(e, (engine.Finished, engine.Failed))]
        assert len(finals) == 1
        assert mine[-1] is finals[0]
        said = [token for e in mine if isinstance(e, engine.TextDelta) for token in e.tokens]
        if not shifts or len(request.prompt) + len(said) < N_CTX:
            assert said == greedy(request.prompt, len(said))
        last = finals[0]
        if isinstance(last, engine.Failed):
            assert any(words in last.message for words in EXPECTED_FAILURES), last
            continue
        text = "".join(e.text for e in mine if isinstance(e, engine.TextDelta))
        assert (text, list(last.tokens)) == (last.text, said)
        assert last.timings.n_prompt == last.timings.n_cached + last.timings.n_read
        whole = codecs.getincrementaldecoder("utf-8")("replace").decode(
            bytes(token for token in said if token < 256)
        )
        assert whole.startswith(text)
        assert not any(word in text for word in request.stop)
        if last.stop_type == "eos":
            assert said[-1] == EOS
        elif last.stop_type == "word":
            assert whole.startswith(text + last.stop_word)


def listed(logits):
    return ScriptedContext(logits, 260)


def paged(logits):
    return PagedContext(logits, 256, 5, snapshot_bytes=1 << 14)


def windowed(logits):
    return PagedContext(logits, 256, 5, window=32, snapshot_bytes=1 << 14)


@pytest.mark.parametrize("make_context", [listed, paged, windowed])
@pytest.mark.parametrize(
    ("seed", "sleeps", "shifts"),
    [(0, False, False), (1, True, False), (2, False, True), (3, True, True), (4, False, False)],
)
def test_whatever_happens_every_task_ends_once_and_right(
    seed, sleeps, shifts, make_context, tmp_path, monkeypatch
):
    threads = set(threading.enumerate())
    soak = Soak(seed, make_context, tmp_path, sleeps, shifts)
    monkeypatch.setattr(os, "fsync", soak.harm.sync)
    try:
        soak.run(N_ROUNDS)
        soak.check()
    finally:
        soak.client.close()
    assert set(threading.enumerate()) <= threads
    if sleeps:
        assert len(soak.contexts) > 1
