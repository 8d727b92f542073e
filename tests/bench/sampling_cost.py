"""What choosing a token costs on large vocabularies, in time of the thread alone.

    python -m tests.bench.sampling_cost [--rounds N]

Prints a line for each chain: median and worst microseconds for a row of random logits, and for
rows of a real model with 262k tokens where one is at hand. Nothing is asserted; the limits are
300 µs for the default chain and 1,000 µs with every sampler on.
"""

import argparse
import statistics
import time

import numpy as np

from engine.params import SamplingParams
from engine.runtime import Model
from engine.sampling import RowRanker, SamplerChain, rank_after
from tests.fakes.numbered_vocab import NumberedVocab
from tests.make.models import folder

SIZES = (49_152, 262_144)
EVERY = {
    **dict(repeat_penalty=1.2, presence_penalty=0.3, frequency_penalty=0.1, repeat_last_n=256),
    **dict(dry_multiplier=0.8, dry_penalty_last_n=1024, top_n_sigma=3.0),
    **dict(typical_p=0.99, top_p=0.95, min_p=0.01, xtc_probability=0.5, xtc_threshold=0.05),
    **dict(temperature=0.8, dynatemp_range=0.3),
}
CASES = {
    "default chain": {},
    "greedy": {"temperature": 0.0},
    "nothing but dist": {"samplers": []},
    "temperature alone": {"samplers": ["temperature"]},
    "top-p of everything": {"samplers": ["top_p", "temperature"]},
    "every sampler, default order": EVERY,
    "every sampler, and a bias": {**EVERY, "logit_bias": [(i, -1.0) for i in range(300)]},
    "every sampler, back to front": {
        **EVERY,
        "samplers": list(reversed(SamplingParams().samplers)),
    },
    "every sampler but top-k": {**EVERY, "top_k": 0},
    "every sampler, then adaptive-p": {
        **EVERY,
        "samplers": [*SamplingParams().samplers, "adaptive_p"],
        "adaptive_target": 0.4,
    },
    "adaptive-p of everything": {"samplers": ["adaptive_p"], "adaptive_target": 0.4},
    "infill after top-k": {"samplers": ["top_k", "infill"]},
    "mirostat 1": {"mirostat": 1},
    "mirostat 2": {"mirostat": 2},
}
HOT = {"samplers": ["temperature", "top_p"], "temperature": 1.5}
TEXT = "A monk wrote in the year 1243 that the people of this village on the river had built a"
SHAPES = {"peaked": 4.0, "flat": 0.5}  # the spread of the logits


def rows(n: int, spread: float) -> list[np.ndarray]:
    """Return rows of logits as a model gives them: most low, a few high."""
    rng = np.random.default_rng(n)
    return [rng.normal(scale=spread, size=n).astype(np.float32) for _ in range(4)]


def cost(step: object, n_rounds: int) -> tuple[float, float]:
    """Return the median and the worst microseconds of this thread for one call."""
    times = []
    for i in range(n_rounds):
        begun = time.thread_time()
        step(i)  # type: ignore[operator]
        times.append(1e6 * (time.thread_time() - begun))
    return statistics.median(times), max(times)


def chain_step(chain: SamplerChain, logits: list[np.ndarray]) -> object:
    """Return a function that chooses a token and takes it."""

    def step(i: int) -> None:
        chain.accept(chain.apply(logits[i % len(logits)]))

    return step


def main() -> None:
    """Print one line for each chain, vocabulary and shape, then what probabilities cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    print(f"{'µs of the thread for a token':34}" + "tokens  logits   median    worst")
    for n in SIZES:
        vocab = NumberedVocab(n, eog_ids=[0])
        for shape, spread in SHAPES.items():
            logits = rows(n, spread)
            for name, params in CASES.items():
                chain = SamplerChain(SamplingParams(seed=1, **params), vocab)
                chain.accept_all([i % 700 for i in range(4096)])
                middle, worst = cost(chain_step(chain, logits), options.rounds)
                print(f"{name:34}{n:6}  {shape:6} {middle:8.0f} {worst:8.0f}", flush=True)
            print_ranking(vocab, logits, shape, options.rounds)
    if (file := folder() / "gemma3.gguf").exists():
        print_real(str(file))


def print_real(path: str) -> None:
    """Print what the chains cost on the rows that a real model gives for a text."""
    model = Model.load(path)
    context = model.context(n_ctx=256)
    tokens = model.vocab.tokenize(TEXT)
    logits = list(np.array(context.decode(tokens, want="all")))
    for name, params in {**CASES, "hot, then top-p of everything": HOT}.items():
        chain = SamplerChain(SamplingParams(seed=1, **params), model.vocab)
        chain.accept_all(tokens)
        middle, worst = cost(chain_step(chain, logits), len(logits))
        print(f"{name:34}{model.vocab.n_tokens:6}  real   {middle:8.0f} {worst:8.0f}", flush=True)
    model.close()


def print_ranking(
    vocab: NumberedVocab, logits: list[np.ndarray], shape: str, n_rounds: int
) -> None:
    """Print what the ten likeliest tokens cost, before the chain and after it."""
    ranker = RowRanker(vocab.n_tokens)
    chain = SamplerChain(SamplingParams(seed=1, samplers=[]), vocab)
    chain.apply(logits[0])
    steps = {
        "10 probabilities before": lambda i: ranker.rank(logits[i % len(logits)], 5, 10),
        "10 probabilities after, all left": lambda i: rank_after(chain, 5, 10),
    }
    for name, step in steps.items():
        middle, worst = cost(step, n_rounds)
        print(f"{name:34}{vocab.n_tokens:6}  {shape:6} {middle:8.0f} {worst:8.0f}", flush=True)


if __name__ == "__main__":
    main()
