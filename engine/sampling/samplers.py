"""SAMPLERS: what each sampler is called, what it does in plain words, and its parameters.

One table feeds the chain (names, order, no-op rule), the sliders of the app and the manual. Values
themselves are checked by `engine.params.SamplingParams`, which also holds the defaults.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from engine.errors import RequestError, nearest
from engine.params import SamplingParams

_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(SamplingParams)}


@dataclass(frozen=True)
class Parameter:
    """One slider: a field of SamplingParams, its useful range and what moving it does.

    A value outside min … max is allowed where it is not absurd; it is only not on the slider.
    """

    key: str
    default: float
    min: float
    max: float
    step: float
    help: str


@dataclass(frozen=True)
class Sampler:
    """One row: the name in `SamplingParams.samplers`, its letter, and when it does nothing.

    `printed` is its name in a printed chain. `letter` is "" for what cannot be put in order.
    """

    name: str
    printed: str
    letter: str
    help: str
    parameters: tuple[Parameter, ...]
    is_off: Callable[[SamplingParams], bool]
    more_aliases: tuple[str, ...] = ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other spellings of the name, lower case."""
        spellings = {self.name, *self.more_aliases}
        spellings |= {s.replace("_", "-") for s in spellings}
        return tuple(sorted(spellings | {s.replace("-", "") for s in spellings}))


def _parameter(
    key: str, low: float, high: float, step: float, help: str, default: float | None = None
) -> Parameter:
    return Parameter(key, _DEFAULTS[key] if default is None else default, low, high, step, help)


def _never(params: SamplingParams) -> bool:
    return False


_ROWS = (
    Sampler(
        "penalties",
        "penalties",
        "e",
        "Makes tokens that were used lately less likely, so that the text repeats itself less.",
        (
            _parameter(
                "repeat_penalty",
                *(1.0, 1.5, 0.01),
                "How hard a token that was already used is held back. 1 does nothing; above 1.2 "
                "even needed words start to be avoided.",
            ),
            _parameter(
                "repeat_last_n",
                *(0, 4096, 64),
                "How many of the last tokens count as used. 0 switches all three penalties off.",
            ),
            _parameter(
                "presence_penalty",
                *(0.0, 2.0, 0.05),
                "Held back once, however often the token was used: invites new subjects.",
            ),
            _parameter(
                "frequency_penalty",
                *(0.0, 2.0, 0.05),
                "Held back for each time the token was used: wears favourite words out.",
            ),
        ),
        lambda p: (
            p.repeat_last_n <= 0
            or (p.repeat_penalty == 1 and p.frequency_penalty == 0 and p.presence_penalty == 0)
        ),
    ),
    Sampler(
        "dry",
        "dry",
        "d",
        "Stops the text from repeating whole phrases: the longer the copy, the stronger it acts.",
        (
            _parameter(
                "dry_multiplier",
                *(0.0, 5.0, 0.01),
                "Strength. 0 is off, 0.8 is a good start.",
            ),
            _parameter(
                "dry_base",
                *(1.0, 4.0, 0.01),
                "How fast the penalty grows with each further copied token.",
            ),
            _parameter(
                "dry_allowed_length",
                *(1, 20, 1),
                "Copies up to this many tokens are free; names and turns of phrase need some.",
            ),
            _parameter(
                "dry_penalty_last_n",
                *(0, 4096, 64),
                "How far back copies are looked for, in tokens. 0 is off.",
            ),
        ),
        lambda p: p.dry_multiplier == 0 or p.dry_base < 1 or p.dry_penalty_last_n <= 0,
    ),
    Sampler(
        "top_n_sigma",
        "top-n-sigma",
        "s",
        "Keeps tokens whose score is near the best one, measured by how scores usually spread.",
        (
            _parameter(
                "top_n_sigma",
                *(0.0, 5.0, 0.01),
                "How many standard deviations below the best score are still allowed. 0 is off, "
                "1 is strict; it works at any temperature.",
                default=0.0,
            ),
        ),
        lambda p: p.top_n_sigma <= 0,
        ("topnsigma",),
    ),
    Sampler(
        "top_k",
        "top-k",
        "k",
        "Keeps only so many of the likeliest tokens.",
        (
            _parameter(
                "top_k",
                *(0, 200, 1),
                "How many. Fewer is safer and plainer; 1 always takes the likeliest, 0 keeps all.",
            ),
        ),
        lambda p: p.top_k <= 0,
    ),
    Sampler(
        "typ_p",
        "typical",
        "y",
        "Keeps tokens that are about as surprising as this place in the text calls for.",
        (
            _parameter(
                "typical_p",
                *(0.0, 1.0, 0.01),
                "How much of the probability is kept, the most typical first. 1 is off; it can "
                "drop the likeliest token when that is too obvious.",
            ),
        ),
        lambda p: p.typical_p >= 1,
        ("typ", "typical", "typical_p"),
    ),
    Sampler(
        "top_p",
        "top-p",
        "p",
        "Keeps the likeliest tokens that together reach this share of the probability.",
        (
            _parameter(
                "top_p",
                *(0.0, 1.0, 0.01),
                "The share. Lower is safer; 1 is off.",
            ),
        ),
        lambda p: p.top_p >= 1,
        ("nucleus",),
    ),
    Sampler(
        "min_p",
        "min-p",
        "m",
        "Drops tokens that are much less likely than the likeliest one.",
        (
            _parameter(
                "min_p",
                *(0.0, 1.0, 0.01),
                "Kept is what has at least this fraction of the best token's probability. 0 is "
                "off; 0.05 to 0.1 lets a high temperature stay sensible.",
            ),
        ),
        lambda p: p.min_p <= 0,
    ),
    Sampler(
        "xtc",
        "xtc",
        "x",
        "Now and then drops the most obvious tokens, when there are other good ones.",
        (
            _parameter(
                "xtc_probability",
                *(0.0, 1.0, 0.01),
                "How often it acts. 0 is off, 0.5 is at every other token.",
            ),
            _parameter(
                "xtc_threshold",
                *(0.0, 0.5, 0.01),
                "What counts as obvious: tokens at least this probable. The least of them stays.",
            ),
        ),
        lambda p: p.xtc_probability <= 0 or p.xtc_threshold > 0.5,
    ),
    Sampler(
        "temperature",
        "temp-ext",
        "t",
        "How daring the choice is among the tokens that are left.",
        (
            _parameter(
                "temperature",
                *(0.0, 5.0, 0.01),
                "Low is dry and steady, 1 is as the model learned it, high is wild. 0 always "
                "takes the likeliest token.",
            ),
            _parameter(
                "dynatemp_range",
                *(0.0, 5.0, 0.01),
                "Lets the temperature move by this much: lower where the model is sure, higher "
                "where it is not. 0 keeps it fixed.",
            ),
            _parameter(
                "dynatemp_exponent",
                *(0.01, 5.0, 0.01),
                "How uncertainty turns into heat: above 1 it stays cool for longer.",
            ),
        ),
        lambda p: p.temperature == 1 and p.dynatemp_range <= 0,
        ("temp",),
    ),
    Sampler(
        "mirostat",
        "mirostat",
        "",
        "Steers how surprising the text is, instead of cutting. The other samplers then rest, "
        "except the temperature.",
        (
            _parameter(
                "mirostat",
                *(0, 2, 1),
                "0 is off, 1 is the first method, 2 is the newer and simpler one.",
            ),
            _parameter(
                "mirostat_tau",
                *(0.0, 10.0, 0.1),
                "The surprise to aim for, in bits per token: lower is more focused.",
            ),
            _parameter(
                "mirostat_eta",
                *(0.0, 1.0, 0.01),
                "How fast it corrects itself.",
            ),
        ),
        lambda p: p.mirostat == 0,
    ),
    Sampler(
        "adaptive_p",
        "adaptive-p",
        "a",
        "Prefers tokens of a certain probability, and so avoids both the obvious and the absurd. "
        "It acts when “adaptive_p” is in the chain.",
        (
            _parameter(
                "adaptive_target",
                *(-1.0, 1.0, 0.01),
                "The probability to aim for; below 0 nothing is preferred.",
            ),
            _parameter(
                "adaptive_decay",
                *(0.0, 0.99, 0.01),
                "How long earlier choices are remembered when aiming; higher is longer.",
            ),
        ),
        _never,
    ),
    Sampler(
        "infill",
        "infill",
        "i",
        "For filling a gap in a text: ends when an end is likely, else keeps what stands out.",
        (),
        _never,
    ),
    Sampler("greedy", "greedy", "", "Takes the likeliest token that is left.", (), _never),
    Sampler("dist", "dist", "", "Draws a token by its probability.", (), _never),
)

SAMPLERS: dict[str, Sampler] = {row.name: row for row in _ROWS}
SAMPLING_SETTINGS: tuple[Sampler, ...] = tuple(row for row in _ROWS if row.parameters)

_SELECTORS = ("greedy", "dist")
_BY_LETTER = {row.letter: row.name for row in _ROWS if row.letter}
_BY_ALIAS = {
    alias: row.name
    for row in _ROWS
    if row.letter or row.name in _SELECTORS
    for alias in row.aliases
}


def sampler_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the canonical names of a chain given as names, aliases or one string of letters.

    Raises RequestError for a name that is not known.
    """
    given = tuple(names)
    if len(given) == 1 and given[0].lower() not in _BY_ALIAS and set(given[0]) <= set(_BY_LETTER):
        return tuple(_BY_LETTER[letter] for letter in given[0])
    found = []
    for name in given:
        canonical = _BY_ALIAS.get(name.lower()) or _BY_LETTER.get(name)
        if canonical is None:
            raise RequestError(f"There is no sampler “{name}”.{nearest(name.lower(), _BY_ALIAS)}")
        found.append(canonical)
    return tuple(found)
