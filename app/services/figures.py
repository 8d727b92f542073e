"""What an answer cost, in numbers and words: speeds, counts, and why it stopped."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from app.services.replay import runs_of
from app.services.sources import in_words, source_of
from app.strings import count, seconds, tr

STOP_TYPES = {
    "eos": "the model had finished",
    "word": "a stop word came",
    "limit": "the limit of tokens was reached",
    "cancelled": "it was stopped",
}
_ENDLESS = ("n_predict", "t_max_predict_ms", "reasoning_budget")


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


def one_line(value: Any, longest: int = 4000) -> str:
    """Return a value of a setting on one line: lists with commas, long texts cut."""
    if isinstance(value, list | tuple):
        value = ", ".join(repr(x) if str(x).strip() != str(x) else str(x) for x in value)
    if isinstance(value, float):
        value = f"{value:g}"
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
    return out + _of_all_runs(record)


def _of_all_runs(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the values of each run of an answer, the last one first."""
    runs, before = runs_of(record), 0
    parts: list[list[tuple[str, str]]] = []
    for place, run in enumerate(runs):
        head = tr("Went on at token {n}", n=count(before)) if place else tr("Began with")
        parts.append([*([(head, "")] if len(runs) > 1 else []), *_of_run(run, before)])
        before += int(run.get("n_run", 0))
    return [row for part in reversed(parts) for row in part]


def _of_run(run: Mapping[str, Any], before: int) -> list[tuple[str, str]]:
    """Return every value of a run that `before` tokens stood before, and what changed in it."""
    out: list[tuple[str, str]] = []
    if run.get("seed") is not None:
        out.append((tr("Seed"), str(run["seed"])))
    for change in run.get("changes") or ():
        at = tr("Changed at token {n}", n=count(before + change["at"]))
        changed = ", ".join(f"{k} = {one_line(v)}" for k, v in change["values"].items())
        is_ended = change["values"] == {"reasoning_budget": 0}
        out.append((at, tr("asked to answer now") if is_ended else changed))
    if run.get("sampling"):
        out.append((tr("Sampling"), ""))
    sources = run.get("sources", {})
    for name, value in (run.get("sampling") or {}).items():
        source = source_of(sources, name, is_set=False)
        whence = f" · {in_words(source)}" if source is not None else ""
        out.append((name, one_line(value) + whence))
    for part, title in (("limits", tr("Limits")), ("context", tr("Memory and machine"))):
        out += [(title, "")] if run.get(part) else []
        out += [(name, _limit(name, value)) for name, value in (run.get(part) or {}).items()]
    if run.get("system") or "keeps_reasoning" in run:
        out.append((tr("Prompt"), ""))
    if run.get("system"):
        out.append((tr("System prompt"), one_line(run["system"])))
    if "keeps_reasoning" in run:
        words = tr("shown again") if run["keeps_reasoning"] else tr("left out")
        out.append((tr("Earlier thoughts"), words))
    return out


def _limit(name: str, value: Any) -> str:
    """Return a limit in words where its number stands for one."""
    if value is None:
        return tr("chosen by the engine") if name.startswith("n_threads") else "–"
    return tr("no limit") if value == -1 and name in _ENDLESS else one_line(value)
