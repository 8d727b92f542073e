"""What a measurement found, as one line: ours, theirs, the ratio, what is asked, met or not."""

from dataclasses import dataclass

COLUMNS = "{:44} {:>10} {:>10} {:9} {:>7}  {:>8}  {}"
HEADLINE = COLUMNS.format("", "ours", "llama.cpp", "", "ratio", "asked", "")


@dataclass(frozen=True)
class Figure:
    """One measured value; `theirs` makes it a ratio, and the limits are then held against that."""

    label: str
    ours: float
    theirs: float | None = None
    unit: str = "tokens/s"
    least: float | None = None
    most: float | None = None

    @property
    def value(self) -> float:
        """Return what is held against the limits: the ratio where there are two sides."""
        return self.ours if self.theirs is None else self.ours / self.theirs

    @property
    def is_met(self) -> bool:
        """Return whether the value keeps both limits."""
        is_enough = self.least is None or self.value >= self.least
        return is_enough and (self.most is None or self.value <= self.most)

    def __str__(self) -> str:
        theirs, ratio = "", ""
        if self.theirs is not None:
            theirs, ratio = number(self.theirs), f"{self.value:.2f}"
        asked = f"≥ {self.least:g}" if self.least is not None else ""
        asked = f"≤ {self.most:g}" if self.most is not None else asked
        verdict = ("met" if self.is_met else "NOT MET") if asked else ""
        cells = (self.label, number(self.ours), theirs, self.unit, ratio, asked, verdict)
        return COLUMNS.format(*cells).rstrip()


def number(value: float) -> str:
    """Return a value with about three significant digits."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"
