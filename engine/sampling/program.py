"""Program: sampling parameters turned into the steps of a run, and the state those steps keep."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.native.buffers import address, aligned
from engine.params import SamplingParams
from engine.sampling import words as w
from engine.sampling.bias import biases_of, finite_f32
from engine.sampling.run import kernels, step
from engine.sampling.samplers import SAMPLERS, sampler_order
from engine.sampling.texts import Vocabulary, breakers_of, texts_of

MIROSTAT_M = 100
SMALLEST_F32 = 1e-45
LN_F32_MAX = 88.7228391  # where a DRY penalty stops growing


class State:
    """Generators and running means of a chain: what a clone copies and a reset starts again."""

    def __init__(self, seed: int, n_generators: int) -> None:
        self.seed = seed
        self.numbers = aligned(w.STATE_WORDS, np.float64)
        self.generators = aligned((0, w.GENERATOR_WORDS), np.uint32)
        self.want(n_generators)

    def want(self, n_generators: int) -> None:
        """Have at least so many generators, each of its own, all from the one seed."""
        known = self.generators
        if len(known) < n_generators:
            self.generators = aligned((n_generators, w.GENERATOR_WORDS), np.uint32)
            self.generators[: len(known)] = known
            for i in range(len(known), n_generators):
                self._start(i)

    def restart(self, seed: int) -> None:
        """Start all generators again from a seed."""
        self.seed = seed
        for i in range(len(self.generators)):
            self._start(i)

    def aim(self, params: SamplingParams) -> None:
        """Set the running means to where a chain with these parameters starts."""
        self.numbers[w.MU] = 2 * params.mirostat_tau
        self.numbers[w.TOTAL] = 1 / (1 - params.adaptive_decay)
        self.numbers[w.WEIGHTED] = params.adaptive_target * self.numbers[w.TOTAL]
        self.numbers[w.PICKED_P] = -1.0

    def copy(self) -> "State":
        """Return an independent state that goes on alike."""
        other = State(self.seed, 0)
        other.generators = aligned(self.generators.shape, np.uint32)
        other.generators[:] = self.generators
        other.numbers[:] = self.numbers
        return other

    def generator(self, i: int) -> int:
        """Return the address of a generator; 0 is the selector's."""
        return address(self.generators[i])

    def _start(self, i: int) -> None:
        kernels().call("sampling/seed", np.array([self.generator(i), self.seed], np.int64))


class Program:
    """The steps for one set of parameters; rebuilt when they change, while the state goes on."""

    def __init__(self, params: SamplingParams, vocab: Vocabulary, state: State) -> None:
        self._params, self._vocab, self._state = params, vocab, state
        self._kept: list[Any] = []  # arrays that steps point into
        self._n_xtc = 0
        self.order = sampler_order(params.samplers)
        state.want(1 + self.order.count("xtc"))
        self.names: list[str] = []
        self.steps: list[list[int]] = []
        self._add_bias()
        for name in self.order if params.mirostat == 0 else ("temperature",):
            if name not in _SELECTORS:
                self._add(name)
        self._add_selector()

    def describe(self) -> str:
        """Return the chain as text, `logits -> ?dry -> top-k -> dist`; a ? does nothing."""
        return " -> ".join(["logits", *self.names])

    def _keep(self, array: Any) -> int:
        self._kept.append(array)
        return address(array)

    def _add_bias(self) -> None:
        biases = biases_of(self._vocab, self._params)
        if len(biases.ids):
            self._kept.append(biases)
            operands = address(biases.ids), address(biases.values), len(biases.ids)
            self.names.append("logit-bias")
            self.steps.append(step("logit_bias", *operands))

    def _add(self, name: str) -> None:
        row, fixed = SAMPLERS[name], self._params.dynatemp_range <= 0
        printed = "temp" if name == "temperature" and self._params.mirostat else row.printed
        if row.is_off(self._params):
            self.names.append("?" + printed)
            return
        self.names.append(printed)
        if name == "temperature" and not fixed and not self._params.mirostat:
            name = "dynamic_temperature"
        sampler = {"typ_p": "typical"}.get(name, name)
        self.steps.append(step(sampler, *_OPERANDS[name](self)))

    def _add_selector(self) -> None:
        params, state = self._params, self._state
        generator, numbers = state.generator(0), address(state.numbers)
        tau, eta = params.mirostat_tau, params.mirostat_eta
        if params.mirostat:
            name = "mirostat" if params.mirostat == 1 else "mirostat_v2"
            self.steps.append(step(name, tau, eta, MIROSTAT_M, generator, numbers))
        elif "adaptive_p" in self.order:
            name, target = "adaptive_p", finite_f32(params.adaptive_target)
            self.steps.append(step(name, target, 0, 0, generator, numbers))
        else:
            name = "greedy" if "greedy" in self.order else "dist"
            self.steps.append(step(name, generator))
        self.names.append(name.replace("_", "-"))

    # ---------------------------------------------------------------- operands of one sampler
    def _penalties(self) -> tuple[float, ...]:
        p = self._params
        factors = p.repeat_penalty, p.frequency_penalty, p.presence_penalty
        return p.repeat_last_n, *map(finite_f32, factors)

    def _dry(self) -> tuple[float, ...]:
        p = self._params
        breakers = breakers_of(self._vocab, p.dry_sequence_breakers)
        self._kept.append(breakers)
        base = finite_f32(p.dry_base)
        largest = int(LN_F32_MAX / math.log(base)) if base > 1.000001 else 2**62
        operands = p.dry_penalty_last_n, p.dry_allowed_length, finite_f32(p.dry_multiplier), base
        return *operands, largest, breakers.address

    def _xtc(self) -> tuple[float, ...]:
        p = self._params
        self._n_xtc += 1
        limits = finite_f32(p.xtc_probability), finite_f32(p.xtc_threshold)
        return *limits, p.min_keep, self._state.generator(self._n_xtc)

    def _dynamic(self) -> tuple[float, ...]:
        p = self._params
        low, high = max(0.0, p.temperature - p.dynatemp_range), p.temperature + p.dynatemp_range
        return finite_f32(low), finite_f32(high), finite_f32(p.dynatemp_exponent)

    def _infill(self) -> tuple[float, ...]:
        vocab = self._vocab
        ends = sorted(vocab.eog_ids)
        biases = biases_of(vocab, self._params)
        banned = set(biases.ids[np.isneginf(biases.values)].tolist())
        fallback = next((t for t in (vocab.eot, vocab.eos) if t >= 0 and t not in banned), -1)
        texts = texts_of(vocab, special=False)
        self._kept.append(texts)
        array = self._keep(np.array(ends or [0], np.int32))
        return array, len(ends), fallback, address(texts.bytes), address(texts.starts)


_SELECTORS = ("adaptive_p", "dist", "greedy")
_OPERANDS: dict[str, Callable[[Program], tuple[float, ...]]] = {
    "penalties": Program._penalties,
    "dry": Program._dry,
    "top_n_sigma": lambda self: (finite_f32(self._params.top_n_sigma),),
    "top_k": lambda self: (self._params.top_k,),
    "typ_p": lambda self: (finite_f32(self._params.typical_p), self._params.min_keep),
    "top_p": lambda self: (finite_f32(self._params.top_p), self._params.min_keep),
    "min_p": lambda self: (
        math.log(max(finite_f32(self._params.min_p), SMALLEST_F32)),
        self._params.min_keep,
    ),
    "xtc": Program._xtc,
    "temperature": lambda self: (finite_f32(self._params.temperature),),
    "dynamic_temperature": Program._dynamic,
    "infill": Program._infill,
}
