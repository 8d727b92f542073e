"""What the engine tells about itself: the state of each slot and its counters."""

from dataclasses import dataclass


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
