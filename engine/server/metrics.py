"""What the engine tells about itself: the state of each slot and its counters."""

from dataclasses import dataclass

from engine.server.events import Timings


@dataclass(frozen=True)
class SlotStatus:
    """One slot at one moment; counts are tokens, `state` is the name of a SlotState."""

    id: int
    state: str
    n_ctx: int
    id_task: int  # -1 when idle
    n_tokens: int  # in memory, idle or not
    n_prompt: int = 0
    n_cached: int = 0
    n_read: int = 0
    n_generated: int = 0
    n_bytes: int = 0  # of K and V in memory

    @property
    def is_processing(self) -> bool:
        """Return whether a request runs in the slot."""
        return self.state != "idle"


@dataclass(frozen=True)
class Metrics:
    """Counters since the start (`…_total`) and what is waiting or running now."""

    prompt_tokens_total: int = 0  # read by the model, without those found in memory
    prompt_tokens_cached_total: int = 0
    prompt_seconds_total: float = 0.0
    tokens_predicted_total: int = 0
    tokens_predicted_seconds_total: float = 0.0
    n_decode_total: int = 0
    n_tokens_max: int = 0
    n_busy_slots_per_decode: float = 0.0
    requests_processing: int = 0
    requests_deferred: int = 0
    prompts_held: int = 0  # in memory, besides what the slots remember
    prompts_held_bytes: int = 0
    prompts_saved: int = 0  # on the disk
    prompts_saved_bytes: int = 0


class Counters:
    """The running totals behind Metrics; written by the engine thread, read by any."""

    def __init__(self) -> None:
        self.n_read = self.n_cached = self.n_generated = self.n_decode = 0
        self.n_busy = self.n_tokens_max = 0
        self.read_ms = self.generate_ms = 0.0

    def add_prompt(self, timings: Timings) -> None:
        """Count a prompt that has been read."""
        self.n_read += timings.n_read
        self.n_cached += timings.n_cached
        self.read_ms += timings.read_ms

    def add_answer(self, timings: Timings) -> None:
        """Count the tokens of an answer that ended."""
        self.n_generated += timings.n_generated
        self.generate_ms += timings.generate_ms

    def add_decode(self, n_busy: int, n_tokens_max: int) -> None:
        """Count a decode for so many slots, the longest of them with so many tokens."""
        self.n_decode += 1
        self.n_busy += n_busy
        self.n_tokens_max = max(self.n_tokens_max, n_tokens_max)

    def metrics(self, n_processing: int, n_deferred: int) -> Metrics:
        """Return the totals as they stand."""
        return Metrics(
            prompt_tokens_total=self.n_read,
            prompt_tokens_cached_total=self.n_cached,
            prompt_seconds_total=self.read_ms / 1000,
            tokens_predicted_total=self.n_generated,
            tokens_predicted_seconds_total=self.generate_ms / 1000,
            n_decode_total=self.n_decode,
            n_tokens_max=self.n_tokens_max,
            n_busy_slots_per_decode=self.n_busy / self.n_decode if self.n_decode else 0.0,
            requests_processing=n_processing,
            requests_deferred=n_deferred,
        )
