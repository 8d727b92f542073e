"""Real models: close to exact arithmetic, and to the reference as closely as it is to itself.

Decision: the limits against the reference program are its own spread, not narrower. Measured on
these texts, the same program without flash attention, or fed token by token, differs from its
recorded numbers by KL 3.5e-3 to 5.8e-3 and agrees on 91 to 98 % of the best tokens; an exact
float32 forward pass differs by 2.6e-3 to 5.2e-3 (92 to 98 %). What is recorded holds that much
rounding of its own, so no engine can be asked to come closer. How close ours is to exact
arithmetic is asked for separately.
"""

import subprocess
import sys
import time

import numpy as np
import pytest

from engine.runtime import Model
from tests.make import models, shared
from tests.make.architecture import GOLDEN

TEXTS = ("chat", "code", "mixed", "prose")
TEXT_OF = {"smollm2": "chat", "gemma3": "prose"}  # of what the project has recorded itself
MIXED_SIZES = (1, 40, 5, 1, 12, 13, 64, 3)


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def named_model(request):
    with Model.load(getattr(models, request.param)()) as model:
        yield request.param, model


def log_probabilities(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def decode(model, tokens, sizes, **types):
    """Decode tokens in pieces of the given sizes, over and over; log probabilities per token."""
    pieces, start, i = [], 0, 0
    with model.context(n_ctx=2048, n_threads=2, **types) as context:
        while start < len(tokens):
            size = sizes[i % len(sizes)]
            pieces.append(context.decode(tokens[start : start + size], want="all"))
            start, i = start + size, i + 1
        context.memory.check_integrity()
    return log_probabilities(np.concatenate(pieces))


def divergence(expected, found):
    """Return the mean KL divergence over the recorded best tokens, and how often the best agree."""
    mine = np.take_along_axis(found, expected["top_ids"], -1)
    theirs = expected["top_logprobs"]
    agreement = (found.argmax(-1) == expected["top_ids"][:, 0]).mean()
    return (np.exp(theirs) * (theirs - mine)).sum(-1).mean(), agreement


@pytest.mark.parametrize("sizes", [(2048,), MIXED_SIZES], ids=["whole", "mixed"])
def test_close_to_the_reference_program(named_model, sizes):
    name, model = named_model
    found = []
    for text in TEXTS:
        with np.load(shared.require(f"conformance/logits/{name}.{text}.npz")) as arrays:
            expected = dict(arrays)
        tokens = expected["tokens"]
        logs = decode(model, tokens, sizes)
        loss = -logs[np.arange(len(tokens) - 1), tokens[1:]].mean()
        found.append((*divergence(expected, logs), loss - expected["nll"]))
    kl, agreement, loss = np.array(found).T
    assert kl.mean() <= {"smollm2": 5e-3, "gemma3": 7.5e-3}[name]
    assert agreement.mean() >= 0.92
    assert abs(loss.mean()) <= 0.01 and np.abs(loss).max() <= 0.025


@pytest.mark.parametrize("sizes", [(1,), (8,), (64,)], ids=["one", "few", "many"])
def test_close_to_exact_arithmetic(named_model, sizes):
    name, model = named_model
    with np.load(GOLDEN / "logits" / f"{name}.{TEXT_OF[name]}.npz") as arrays:
        expected = dict(arrays)
    kl, agreement = divergence(expected, decode(model, expected["tokens"], sizes))
    assert kl <= 6e-3  # the reference program: 3.2e-3 and 4.3e-3; activations of 8 bits cost this
    assert agreement >= 0.88  # of 64 tokens, a few of them near ties


def test_a_tiny_trained_model_tells_its_story():
    path = shared.require("models/stories260K-f32.gguf")
    with Model.load(path) as model, model.context(n_ctx=256, n_threads=2) as context:
        tokens = model.vocab.tokenize("Once upon a time")
        for _ in range(30):
            logits = context.decode(tokens[context.memory.seq_pos_max(0) + 1 :])
            tokens.append(int(logits[0].argmax()))
        text = model.vocab.detokenize(tokens, special=False).decode()
    start = (
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the p"
    )
    assert text.strip().startswith(start)


# Mean KL over 300 tokens of prose from logits with exact K and V; two times what was measured.
# F16 is not nearer than Q8_0: what the limits of both hold is the rounding of the activations.
SPREAD = {"f16": 1.5e-2, "q8_0": 1.5e-2, "q5_1": 5e-2, "q4_0": 1.6e-1}


@pytest.mark.parametrize("kind", SPREAD)
def test_smaller_memory_stays_near_the_exact_one(named_model, kind):
    name, model = named_model
    with np.load(GOLDEN / "logits" / f"{name}.{TEXT_OF[name]}.npz") as arrays:
        tokens = np.tile(arrays["tokens"], 5)[:300]
    exact, found = (decode(model, tokens, (300,), type_k=k, type_v=k) for k in ("f32", kind))
    divergence = (np.exp(exact) * (exact - found)).sum(-1).mean()
    assert divergence <= SPREAD[kind]


def test_loading_is_much_cheaper_than_reading_again(tmp_path):
    """Measured in processor time; 4,096 tokens in an idle machine's time: 4.8 s and 0.11 s."""
    tokens = np.random.default_rng(0).integers(0, 49000, 1024)
    sizes = {"n_ctx": 2048, "n_seq_max": 2, "n_threads": 1}
    with Model.load(models.smollm2()) as model, model.context(**sizes) as context:
        context.decode(tokens[:64])
        context.memory.clear()
        started_at = time.process_time()
        context.decode(tokens)
        reading = time.process_time() - started_at
        context.save_sequence(0, tmp_path / "state")
        started_at = time.process_time()
        context.restore_sequence(1, tmp_path / "state")
        assert time.process_time() - started_at <= reading / 20


_MEASURE = """
import re, sys
from pathlib import Path
from engine.runtime import Model

def anonymous():  # memory that no file backs
    return int(re.search(r"RssAnon:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

Model.load(sys.argv[1]).close()  # kernels are there from now on
before = anonymous()
model = Model.load(sys.argv[1])
loaded = anonymous()
context = model.context(n_ctx=32768, n_threads=2)
context.decode([2, 3, 4])
print(loaded - before, anonymous() - loaded, context.memory.stats()["bytes_total"])
model.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
def test_loading_copies_no_weight_and_a_context_takes_only_what_it_uses():
    run = subprocess.run(
        [sys.executable, "-c", _MEASURE, models.gemma3()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    loading, running, total = map(int, run.stdout.split())
    assert loading < 25e6  # the file has 253 MB, its 262144 tokens take a part of this
    assert running < 40e6 < 150e6 < total < 200e6  # 500 MB without windows
