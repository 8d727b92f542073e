"""Hundreds of random requests, cancelled, changed, failing: each ends once, and none lies."""

import codecs
import random
from functools import cache

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError, InternalError, MachineError
from tests.fakes.model import BOS, EOS, N_VOCAB, ScriptedContext, loaded
from tests.fakes.paged import PagedContext

ALPHABET = [*b"ab c\n", *"é漢".encode(), EOS]

EXPECTED_FAILURES = (
    "broken",
    "no",
    "The engine made a mistake (ValueError: broken).",
    "There is no free cell in memory.",
    "The context is full",
    "full for once",
)


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


def random_request(rng, texts):
    prompt = [BOS, *rng.choice(texts)[: rng.randint(1, 60)]]
    options = {"n_predict": rng.choice([0, 1, 3, 8, 20]), "n": rng.choice([1, 1, 1, 2])}
    if rng.random() < 0.3:
        options["stop"] = rng.sample(["a", "b c", "é", "\n", "ab"], 2)
    if rng.random() < 0.2:
        options["id_slot"] = rng.randrange(3)
    if rng.random() < 0.2:
        options["cache_prompt"] = False
    if rng.random() < 0.2:
        options["n_cache_reuse"] = 3
    return engine.CompletionRequest(prompt, temperature=0, **options)


def inject_failures(context, rng):
    def maybe_fail(tokens, seq_ids):
        draw = rng.random()
        if draw < 0.02:
            raise rng.choice([InternalError("broken"), ValueError("broken"), MachineError("no")])
        if draw < 0.06 and len(tokens) > 1:
            raise ContextFullError("full for once")

    context.before_decode = maybe_fail


def check(request, events):
    """Every answer ends once; its stream is its text; its tokens are what the model says."""
    for index in range(request.n):
        mine = [event for event in events if event.index == index]
        finals = [e for e in mine if isinstance(e, (engine.Finished, engine.Failed))]
        assert len(finals) == 1
        assert mine[-1] is finals[0]
        said = [token for e in mine if isinstance(e, engine.TextDelta) for token in e.tokens]
        assert said == greedy(request.prompt, len(said))
        if isinstance(finals[0], engine.Failed):
            continue
        last = finals[0]
        text = "".join(e.text for e in mine if isinstance(e, engine.TextDelta))
        assert text == last.text
        assert list(last.tokens) == said
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
        elif last.stop_type == "limit" and not last.truncated:
            assert len(said) == request.n_predict


def paged(logits, n_ctx):
    return PagedContext(logits, n_ctx, 3)


def listed(logits, n_ctx):
    return ScriptedContext(logits, n_ctx)


@pytest.mark.parametrize("make_context", [listed, paged])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_every_request_ends_once_and_right(seed, make_context):
    rng = random.Random(seed)
    context = make_context(lambda tokens: logits_of(tuple(tokens)), 150)
    model = loaded(None, n_ctx=90, n_batch=24, context=context)
    inject_failures(context, random.Random(seed + 100))
    texts = [bytes(rng.choices(ALPHABET[:-1], k=60)) for _ in range(3)]
    texts.append(texts[0][:30] + texts[1][:30])
    asked = []
    with EngineClient.over(lambda progress: model, 3) as client:
        for _ in range(60):
            request = random_request(rng, texts)
            handle = client.submit(request)
            asked.append((request, handle))
            if rng.random() < 0.2:
                rng.choice(asked)[1].cancel()
            if rng.random() < 0.1:
                client.erase_slot(rng.randrange(3))
            if rng.random() < 0.3:
                rng.choice(asked)[1].wait(10)
        for request, handle in asked:
            check(request, list(handle))
        assert client.metrics().requests_processing == 0
        assert client.metrics().requests_deferred == 0
        for slot in client._loop._session.scheduler.slots:
            assert slot.is_idle
            assert slot.tokens == context.memory.tokens(slot.id)
    if make_context is paged:
        context.memory.check_integrity()
