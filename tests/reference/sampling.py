"""Naive twin of every sampler: one plain function each, in NumPy, whole sorts, no shortcuts.

Ties are broken by place in the array, which is what a stable sort gives.
"""

import math
from dataclasses import dataclass, field

import numpy as np

NEVER = np.float32(-np.inf)


class Generator:
    """MT19937 with the three draws that samplers use."""

    def __init__(self, seed):
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(seed)

    def raw(self):
        return int(self._bits.random_raw())

    def f64(self):
        low = self.raw()
        return (low + self.raw() * 2.0**32) / 2.0**64

    def f32(self):
        return float(np.float32(self.raw() / 2.0**32))

    def index(self, weights):
        """Draw an index with probability proportional to its weight."""
        if len(weights) == 1:
            return 0
        cumulative = np.cumsum(np.asarray(weights, np.float64) / np.sum(weights, dtype=np.float64))
        cumulative[-1] = 1.0
        return int(np.searchsorted(cumulative, self.f64(), side="left"))


@dataclass
class Candidates:
    """The array that samplers edit."""

    ids: np.ndarray
    logits: np.ndarray
    p: np.ndarray
    is_sorted: bool = False
    selected: int = -1

    @classmethod
    def of(cls, logits):
        logits = np.array(logits, np.float32)
        return cls(np.arange(len(logits)), logits, np.zeros_like(logits))

    def __len__(self):
        return len(self.ids)

    def keep(self, order):
        self.ids, self.logits, self.p = self.ids[order], self.logits[order], self.p[order]

    def sort(self):
        if not self.is_sorted:
            self.keep(np.argsort(-self.logits, kind="stable"))
            self.is_sorted = True

    def softmax(self, sort):
        if sort:
            self.sort()
        p = np.exp(self.logits - self.logits.max())
        self.p = (p / p.sum(dtype=np.float64)).astype(np.float32)


def logit_bias(c, biases):
    for token, bias in biases:
        if 0 <= token < len(c):
            c.logits[token] += np.float32(bias)


def penalties(c, history, last_n, repeat, frequency, presence):
    recent = list(history)[-last_n:] if last_n > 0 else []
    if not recent or (repeat == 1 and frequency == 0 and presence == 0):
        return
    for i, token in enumerate(c.ids):
        count = recent.count(token)
        if count:
            logit = c.logits[i]
            logit = logit * np.float32(repeat) if logit <= 0 else logit / np.float32(repeat)
            c.logits[i] = logit - np.float32(count * frequency + presence)
    c.is_sorted = False


def dry_repeats(recent, rep_limit):
    """Return R[k]: how far the newest tokens equal those k places back, at most rep_limit."""
    n = len(recent)
    repeats = [0] * n
    lt = rt = 0
    for k in range(1, n):
        if k > rt:
            i = 0
            while i + k < n and recent[i] == recent[i + k]:
                i += 1
            repeats[k] = min(i, rep_limit)
            if i > 0:
                lt, rt = k, k + i - 1
        elif repeats[k - lt] < rt - k + 1:
            repeats[k] = min(repeats[k - lt], rep_limit)
        else:
            i = rt + 1
            while i < n and recent[i] == recent[i - k]:
                i += 1
            repeats[k] = min(i - k, rep_limit)
            lt, rt = k, i - 1
    return repeats


def dry(c, history, multiplier, base, allowed, last_n, breakers):
    """`breakers` maps a head token to its list of tails (tuples of tokens)."""
    recent = list(history)[::-1][:last_n]
    if multiplier == 0 or base < 1 or len(recent) <= allowed:
        return
    rep_limit = len(recent)
    for i, token in enumerate(recent):
        tails = [len(t) for t in breakers.get(token, ()) if len(t) <= i]
        matches = [
            n for n in tails if any(list(t) == recent[i - n : i][::-1] for t in breakers[token])
        ]
        if matches:
            rep_limit = i - max(matches)
            break
    if rep_limit < allowed:
        return
    best = {}
    for k, length in enumerate(dry_repeats(recent, rep_limit)):
        if k and length >= allowed:
            best[recent[k - 1]] = max(best.get(recent[k - 1], 0), length)
    most = math.floor(88.7228391 / math.log(base)) if base > 1.000001 else math.inf
    for i, token in enumerate(c.ids):
        if token in best and () not in [tuple(t) for t in breakers.get(token, ())]:
            exponent = min(best[token] - allowed, most)
            c.logits[i] -= np.float32(multiplier * base**exponent)
    c.is_sorted = False


def top_n_sigma(c, n):
    if n <= 0 or len(c) <= 1:
        return
    finite = c.logits[c.logits != NEVER].astype(np.float64)
    least = finite.max() - n * finite.std()
    c.logits[c.logits < np.float32(least)] = NEVER


def top_k(c, k):
    if k > 0:
        c.sort()
        c.keep(np.arange(min(k, len(c))))


def typical(c, p, min_keep):
    if p >= 1:
        return
    c.softmax(sort=True)
    with np.errstate(divide="ignore"):
        surprise = -np.log(c.p.astype(np.float64))
    entropy = np.sum(np.where(c.p > 0, c.p * np.where(c.p > 0, surprise, 0), 0))
    order = np.argsort(np.abs(surprise - entropy), kind="stable")
    total, n = 0.0, 0
    for n, i in enumerate(order, 1):
        total += c.p[i]
        if total > p and (min_keep == 0 or n >= min_keep):
            break
    c.keep(order[:n])
    c.is_sorted = False


def top_p(c, p, min_keep):
    if p >= 1:
        return
    c.softmax(sort=False)
    c.sort()
    total = np.cumsum(c.p, dtype=np.float64)
    enough = np.flatnonzero((total >= np.float32(p)) & (np.arange(1, len(c) + 1) >= min_keep))
    c.keep(np.arange(enough[0] + 1 if len(enough) else len(c)))


def min_p(c, p, min_keep):
    if p <= 0 or not len(c):
        return
    least = c.logits.max() + np.float32(math.log(p))
    kept = np.flatnonzero(c.logits >= least)
    if not c.is_sorted and len(kept) >= max(min_keep, 1):
        c.keep(kept)
        return
    c.sort()
    n = 1
    while n < len(c) and (c.logits[n] >= least or n < min_keep):
        n += 1
    c.keep(np.arange(n))


def xtc(c, probability, threshold, min_keep, generator):
    if probability <= 0 or threshold > 0.5 or len(c) < 2:
        return
    if generator.f32() > np.float32(probability):
        return
    c.softmax(sort=True)
    last = max(int(np.sum((c.p >= np.float32(threshold)) & (c.p > 1.2e-38))) - 1, 0)
    if last > 0 and len(c) - last >= min_keep:
        c.keep(np.arange(last, len(c)))


def temperature(c, t):
    if t <= 0:
        best = int(np.argmax(c.logits))
        c.logits[np.arange(len(c)) != best] = NEVER
    else:
        c.logits = (c.logits / np.float32(t)).astype(np.float32)


def dynamic_temperature(c, t, spread, exponent):
    if spread <= 0:
        return temperature(c, t)
    if len(c) <= 1:
        return None
    low, high = max(0.0, t - spread), t + spread
    c.softmax(sort=True)
    p = c.p[c.p > 0].astype(np.float64)
    entropy = float(-np.sum(p * np.log(p)))
    temperature(c, low + (high - low) * (entropy / math.log(len(c))) ** exponent)
    c.softmax(sort=False)
    return None


def infill(c, texts, eog, eot):
    """`texts` holds each token's bytes, `eog` the tokens that end an answer, `eot` a fallback.

    An `eot` of None is one that is forbidden: then the likeliest stays where nothing stands out.
    """
    c.softmax(sort=True)
    ends = np.isin(c.ids, list(eog))
    if 3 * float(c.p[ends].sum()) * len(c) > float(c.p[~ends].sum()):
        c.keep(np.flatnonzero(ends))
        c.p = c.p / c.p.sum()
        return
    for i in range(len(c)):
        for j in range(len(c)):
            if i == j or NEVER in (c.logits[i], c.logits[j]):
                continue
            shorter, longer = texts[c.ids[i]], texts[c.ids[j]]
            if shorter and longer.startswith(shorter):
                winner, loser = (j, i) if c.p[j] > c.p[i] else (i, j)
                c.p[winner] += c.p[loser]
                c.p[loser], c.logits[loser] = 0, NEVER
    least = 0.2 if eot is not None or c.p[np.isin(c.ids, list(eog))].sum() > 0 else c.p.max()
    c.keep(np.flatnonzero((c.p >= min(least, 0.2)) | np.isin(c.ids, list(eog))))
    n = int(np.sum(~np.isin(c.ids, list(eog))))
    if n == 0 and eot is None:
        c.p = c.p / c.p.sum()
        return
    if n == 0:
        c.ids, c.logits, c.p = np.array([eot]), np.ones(1, np.float32), np.ones(1, np.float32)
        return
    c.p = c.p / c.p.sum()
    c.keep(np.flatnonzero((c.p >= 1 / (n + 1)) | np.isin(c.ids, list(eog))))
    c.p = c.p / c.p.sum()
    c.is_sorted = False


def greedy(c):
    c.selected = int(np.argmax(c.logits))


def dist(c, generator):
    if len(c) == 1:
        generator.f64()
        c.p, c.selected = np.ones(1, np.float32), 0
        return
    weights = np.exp(c.logits - c.logits.max())
    total = weights.sum(dtype=np.float64)
    target = total * generator.f64()
    reached = np.flatnonzero((np.cumsum(weights, dtype=np.float64) >= target) & (weights > 0))
    c.selected = int(reached[0]) if len(reached) else int(np.flatnonzero(weights)[-1])
    c.p = (weights / total).astype(np.float32)


@dataclass
class Mirostat:
    """State of both mirostats: the surprise that is allowed now."""

    tau: float
    eta: float
    mu: float = field(init=False)

    def __post_init__(self):
        self.mu = 2 * self.tau

    def _finish(self, c, generator):
        c.softmax(sort=True)
        c.selected = generator.index(c.p)
        self.mu -= self.eta * (-math.log2(c.p[c.selected]) - self.tau)

    def v1(self, c, n_vocab, generator, m=100):
        c.softmax(sort=True)
        n = min(m - 1, len(c) - 1)
        t = np.log((np.arange(n) + 2.0) / (np.arange(n) + 1.0))
        b = np.log(c.p[:n].astype(np.float64) / c.p[1 : n + 1])
        k = 1
        if n > 0:
            s = float(np.sum(t * b) / np.sum(t * t))
            eps = s - 1
            k = int(((eps * 2**self.mu) / (1 - n_vocab**-eps)) ** (1 / s))
        top_k(c, max(k, 1))
        self._finish(c, generator)

    def v2(self, c, generator):
        c.softmax(sort=True)
        with np.errstate(divide="ignore"):
            allowed = int(np.sum(-np.log2(c.p.astype(np.float64)) <= self.mu))
        top_k(c, max(allowed, 1))
        self._finish(c, generator)


@dataclass
class Adaptive:
    """State of adaptive-p: a decaying mean of the probabilities that were chosen."""

    target: float
    decay: float

    def __post_init__(self):
        self.weighted = self.target / (1 - self.decay)
        self.total = 1 / (1 - self.decay)
        self.pending = None

    def apply(self, c, generator):
        c.softmax(sort=False)
        if self.target < 0:
            c.selected = generator.index(c.p)
            return
        original = c.p.copy()
        goal = min(max(self.target, 0), 1)
        aim = goal if self.total == 0 else 2 * goal - self.weighted / self.total
        distance = np.abs(c.p - min(max(aim, 0), 1)) / 0.3
        moved = 5 - 10 * distance**2 / (1 + distance)
        c.logits = np.where(c.logits != NEVER, moved, NEVER).astype(np.float32)
        c.softmax(sort=False)
        c.selected = generator.index(c.p)
        self.pending = int(c.ids[c.selected]), float(original[c.selected])

    def accept(self, token):
        if self.pending and self.pending[0] == token:
            self.weighted = self.pending[1] + self.decay * self.weighted
            self.total = 1 + self.decay * self.total
        self.pending = None
