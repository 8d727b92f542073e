"""What an answer cost, in numbers and words: speeds, counts, and why it stopped."""

import time
from collections import deque
from typing import Any

from app.strings import count, seconds, tr

STOP_TYPES = {
    "eos": "the model had finished",
    "word": "a stop word came",
    "limit": "the limit of tokens was reached",
    "cancelled": "it was stopped",
}


class SpeedMeter:
    """Tokens per second over the last two seconds of one answer."""

    def __init__(self, window_s: float = 2.0) -> None:
        self.n_tokens = 0
        self._window_s = window_s
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, n_tokens: int, now: float | None = None) -> None:
        """Count tokens that have just come."""
        now = time.monotonic() if now is None else now
        self.n_tokens += n_tokens
        self._seen.append((now, self.n_tokens))
        while len(self._seen) > 2 and now - self._seen[0][0] > self._window_s:
            self._seen.popleft()

    def rate(self) -> float:
        """Return tokens per second, 0 before there is enough to tell."""
        if len(self._seen) < 2:
            return 0.0
        (t0, n0), (t1, n1) = self._seen[0], self._seen[-1]
        return (n1 - n0) / (t1 - t0) if t1 - t0 > 0.1 else 0.0


def timings_record(timings: Any) -> dict[str, Any]:
    """Return the timings of an answer as plain values for its record."""
    names = ("n_prompt", "n_cached", "n_read", "read_ms", "first_token_ms", "n_generated")
    values = {name: getattr(timings, name) for name in (*names, "generate_ms")}
    values["read_tps"] = round(timings.read_tps, 2)
    values["generate_tps"] = round(timings.generate_tps, 2)
    return values


def summary(record: dict[str, Any]) -> str:
    """Return the short line beside the actions of an answer."""
    timings = record.get("timings")
    if not timings:
        return ""
    parts = [tr("{n} tokens", n=count(timings["n_generated"]))]
    if timings["generate_tps"]:
        parts.append(tr("{n}/s", n=speed(timings["generate_tps"])))
    is_remembered = timings["n_cached"] and timings["n_read"] <= 1
    if is_remembered:
        parts.append(tr("0 re-read"))
    elif record.get("n_reread") == 0:
        parts.append(tr("{n} read, 0 re-read", n=count(timings["n_read"])))
    else:
        parts.append(tr("{n} read", n=count(timings["n_read"])))
    return " · ".join(parts)


def speed(tokens_per_second: float) -> str:
    """Return a speed with as many digits as it deserves: 261, 42.5, 3.2."""
    return f"{tokens_per_second:.0f}" if tokens_per_second >= 100 else f"{tokens_per_second:.1f}"


def one_line(value: Any, longest: int = 60) -> str:
    """Return a value of a setting on one line: lists with commas, long texts cut."""
    if isinstance(value, list | tuple):
        value = ", ".join(repr(x) if str(x).strip() != str(x) else str(x) for x in value)
    text = " ".join(str(value).split()) or "–"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return everything known about an answer as (label, value), for its details."""
    timings = record.get("timings") or {}
    out: list[tuple[str, str]] = []
    if record.get("model"):
        out.append((tr("Model"), str(record["model"])))
    if timings:
        read = tr(
            "{all} ({cached} from memory), {tps} tokens/s",
            all=count(timings["n_prompt"]),
            cached=count(timings["n_cached"]),
            tps=speed(timings["read_tps"]),
        )
        written = tr(
            "{n}, {tps} tokens/s",
            n=count(timings["n_generated"]),
            tps=speed(timings["generate_tps"]),
        )
        out.append((tr("Tokens read"), read))
        out.append((tr("Tokens written"), written))
        out.append((tr("First token after"), f"{timings['first_token_ms']:.0f} ms"))
    if record.get("thought_s"):
        out.append((tr("Thought for"), seconds(record["thought_s"])))
    if record.get("stop_type"):
        out.append((tr("Ended because"), tr(STOP_TYPES.get(record["stop_type"], ""))))
    if record.get("seed") is not None:
        out.append((tr("Seed"), str(record["seed"])))
    for part in ("sampling", "limits"):
        out += [(name, one_line(value)) for name, value in (record.get(part) or {}).items()]
    for change in record.get("changes") or ():
        at = tr("Changed at token {n}", n=count(change["at"]))
        changed = ", ".join(f"{k} = {one_line(v)}" for k, v in change["values"].items())
        out.append((at, changed))
    return out
