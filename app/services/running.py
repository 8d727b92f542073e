"""One answer on its way: what came of it so far, how fast, and what is written down at its end."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.chats.conversation import Message
from app.services.figures import SpeedMeter, timings_record
from app.services.reasoning import ReasoningStream
from app.services.replay import earlier_runs


@dataclass
class Reply:
    """An answer that runs or waits; `events` is filled by the engine thread, drained elsewhere.

    Attributes:
        progress: the last PromptProgress, or None while it waits for its turn.
        thought_s: seconds of reasoning before the answer proper, 0 without any.
        told: what the record keeps besides (sources, system prompt, …).
        then: called with the settled message when this run has ended by itself, or None.
        n_earlier: tokens that the conversation had after the answer before this one.
        cut_by: what stopped it besides the person: "model" for another model, else "".
        maker: what the record keeps of the model that writes it, once that is known.
    """

    message: Message
    request: dict[str, Any]
    told: dict[str, Any] = field(default_factory=dict)
    then: Callable[[Message], None] | None = None
    events: deque[Any] = field(default_factory=deque)
    handle: Any = None
    parts: list[str] = field(default_factory=list)
    speed: SpeedMeter = field(default_factory=SpeedMeter)
    committed_at: float = field(default_factory=time.monotonic)
    is_dirty: bool = False
    is_stopping: bool = False
    changes: list[dict[str, Any]] = field(default_factory=list)
    progress: Any = None
    thought_s: float = 0.0
    n_earlier: int = 0
    cut_by: str = ""
    maker: dict[str, Any] = field(default_factory=dict)
    _reasoning: ReasoningStream = field(default_factory=ReasoningStream)
    _first_text_at: float = 0.0

    def __post_init__(self) -> None:
        """Go on with what an earlier run of the same answer left."""
        if self.message.text:
            self.parts.append(self.message.text)
            self._reasoning.feed(self.message.text)
        self.thought_s = float(self.message.record.get("thought_s", 0.0))

    def text(self) -> str:
        """Return everything that has come so far."""
        return "".join(self.parts)

    def withdraw(self) -> None:
        """Take the request back from the engine; what it still says of it is not heard."""
        if self.handle is not None:
            self.handle.cancel()
        self.handle = self.progress = None
        self.events = deque()

    def add(self, text: str) -> None:
        """Take more text and measure how long the model thinks."""
        now = time.monotonic()
        self._first_text_at = self._first_text_at or now
        was_thinking = self._reasoning.is_thinking or not self._reasoning.has_thought
        self._reasoning.feed(text)
        self.parts.append(text)
        self.is_dirty = True
        if self._reasoning.has_thought and was_thinking:
            self.thought_s = max(self.thought_s, now - self._first_text_at)

    def unended(self) -> dict[str, Any]:
        """Return what is written down of a run that ends without the engine's last event.

        It takes the place of what the record of an answer that goes on has of the run before.
        """
        runs = earlier_runs(self.message.record) if self.message.text else []
        return {"runs": runs, "seed": None, "n_run": None, "n_cached": None, "truncated": False}

    def n_arrived(self) -> int:
        """Return how many tokens the engine has sent, those not yet drained too."""
        waiting = list(self.events)
        return self.speed.n_tokens + sum(len(getattr(event, "tokens", ())) for event in waiting)

    def phase(self) -> str:
        """Return where it is: "waiting", "reading" or "writing"."""
        if self.speed.n_tokens:
            return "writing"
        return "reading" if self.progress is not None else "waiting"

    def record(self, finished: Any) -> dict[str, Any]:
        """Return what is written down of the engine's last event.

        An answer that was continued counts what all its runs wrote.
        """
        timings = timings_record(finished.timings)
        earlier = self.message.record.get("timings") if self.message.text else None
        n_used = timings["n_prompt"] + timings["n_generated"]
        if earlier:
            for name in ("n_generated", "generate_ms"):
                timings[name] += earlier.get(name, 0)
            if timings["generate_ms"]:
                per_s = timings["n_generated"] / timings["generate_ms"] * 1000
                timings["generate_tps"] = round(per_s, 2)
        out = {
            "stop_type": finished.stop_type,
            "seed": finished.seed,
            "id_slot": finished.id_slot,
            "truncated": finished.truncated,
            "timings": timings,
            "n_used": n_used,
            "n_cached": finished.timings.n_cached,
            "n_run": finished.timings.n_generated,
            "changes": [{"at": at, "values": values} for at, values in finished.changes],
        }
        if self.n_earlier:  # its last token was written, never read
            n_old = min(self.n_earlier - 1, timings["n_prompt"])
            out["n_reread"] = max(0, n_old - timings["n_cached"])
        return out | ({"thought_s": round(self.thought_s, 1)} if self.thought_s else {})
