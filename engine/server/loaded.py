"""What the engine thread owns once a model is loaded, as the loop sees it: plain contracts.

The runtime fills these in (`engine.client`), and so do the scripted models of the tests.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from engine.params import CompletionRequest, Prompt
from engine.server.slot import Sampler

Row = Any  # logits of one token, float32 [n_vocab]


class Context(Protocol):
    """Batch to logits, with memory per sequence. Used by the engine thread only."""

    memory: Any  # seq_rm, seq_cp, seq_pos_min, … as in `engine.memory`

    def decode(
        self, tokens: Any, positions: Any = None, seq_ids: Any = 0, want: Any = "last"
    ) -> Any:
        """Return logits [n_wanted, n_vocab]; raise ContextFullError when no cell is free."""

    def abort(self) -> None:
        """Make the decode in progress, or else the next, raise RequestError. Any thread."""

    def save_sequence(self, seq_id: int, path: Any) -> Any:
        """Write one sequence to a file."""

    def restore_sequence(self, seq_id: int, path: Any) -> list[int]:
        """Read one sequence from a file; return its tokens."""


class Vocab(Protocol):
    """Token ids to bytes."""

    @property
    def n_tokens(self) -> int:
        """Return how many ids there are."""

    @property
    def bos(self) -> int:
        """Return the id that begins a text, or -1."""

    @property
    def eog_ids(self) -> Collection[int]:
        """Return the ids that end generation."""

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of one token."""


class Ranking(Protocol):
    """The likeliest tokens with ln p, and ln p of the token that was taken."""

    @property
    def ids(self) -> Any:
        """Return token ids, an array [n]."""

    @property
    def logprobs(self) -> Any:
        """Return their ln p, an array [n]."""

    @property
    def logprob(self) -> float:
        """Return ln p of the token that was taken."""


@dataclass
class Loaded:
    """A model ready to run, its memory for as many sequences as there are slots.

    `make_sampler(request)` raises RequestError for what cannot be honoured; `rank_row(row, token,
    n)` and `rank_after(sampler, token, n)` rank a token before and after the chain; `adopted()` is
    entered by the engine thread for as long as it runs steps; `n_batch` tokens at most go into
    one step.
    """

    context: Context
    vocab: Vocab
    encode: Callable[[Prompt], list[int]]
    tokenize: Callable[[str], list[int]]
    make_sampler: Callable[[CompletionRequest], Sampler]
    rank_row: Callable[[Row, int, int], Ranking]
    rank_after: Callable[[Any, int, int], Ranking]
    n_ctx_slot: int
    n_batch: int
    stop_words: Sequence[str] = ()
    shifts_context: bool = False  # a full context drops its middle instead of ending the answer
    adopted: Callable[[], AbstractContextManager[None]] = nullcontext
    close: Callable[[], None] = lambda: None
