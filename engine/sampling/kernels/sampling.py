"""The unit "sampling": runs a chain over one row of logits; with the samplers of everyday use.

A sampler is a kernel of its own, sampler(run, step, 0): it edits the candidates of the run by the
operands in its step. Rare ones are in the unit "sampling.more".
"""

from engine.native.simd import call_kernel, store_f64
from engine.sampling.kernels.candidates import fill, largest, softmax
from engine.sampling.kernels.generator import next_word, seed_generator
from engine.sampling.kernels.lanes import get
from engine.sampling.kernels.penalties import logit_bias, penalties
from engine.sampling.kernels.scalars import ln
from engine.sampling.kernels.selectors import dist, greedy
from engine.sampling.kernels.temperature import temperature
from engine.sampling.kernels.truncate import min_p, top_k, top_p
from engine.sampling.words import LOG_SUM_EXP, N_STEPS, OK, OP, STATUS, STEP_WORDS, STEPS, E


def apply(run, thread, n_threads):
    """Fill the candidates from the run's logits and do its steps until one fails."""
    fill(run)
    step = get(run, STEPS)
    end = step + 8 * STEP_WORDS * get(run, N_STEPS)
    while step < end and get(run, STATUS) == OK:
        call_kernel(get(step, OP), run, step, 0)
        step += 8 * STEP_WORDS


def log_sum(run, step, _):
    """ln of the sum of exp of all logits, into the state: what turns a logit into a logprob."""
    total = softmax(run)
    if total > 0.0:
        store_f64(get(step, E) + 8 * LOG_SUM_EXP, largest(run) + ln(total))


def seed(block, thread, n_threads):
    """Start the generator at word 0 from the number in word 1."""
    seed_generator(get(block, 0), get(block, 1))


def draw(block, thread, n_threads):
    """Write the next outputs of the generator at word 0 as f64 to word 2, word 1 of them."""
    for i in range(get(block, 1)):
        store_f64(get(block, 2) + 8 * i, next_word(get(block, 0)) * 1.0)


def kernels():
    """Return the kernels of the unit."""
    found = [apply, dist, draw, greedy, log_sum, logit_bias, min_p, penalties, seed]
    return {kernel.__name__: kernel for kernel in [*found, temperature, top_k, top_p]}
