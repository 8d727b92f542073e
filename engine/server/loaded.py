"""What the engine thread owns once a model is loaded, as the loop sees it: plain contracts.

The runtime fills these in (`engine.client`), and so do the scripted models of the tests.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from engine.params import CompletionRequest, Prompt
from engine.server.sampler import Sampler

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

    def forget_abort(self) -> None:
        """Take back an abort that came too late."""

    def embedding(self, tokens: Any, pooling: str | None = None) -> Any:
        """Begin to embed a text: `step(n)` reads n tokens, True when it is the last, `result()`.

        One at a time; `memory.forget_spare()` gives its pages back.
        """

    def snapshot_sequence(self, seq_id: int) -> Any:
        """Hold what a sequence remembers; see `engine.memory` for snapshots."""

    def restore_snapshot(self, snapshot: Any, seq_id: int) -> list[int]:
        """Let a sequence remember what a snapshot holds; return its tokens."""

    def peek_saved(self, path: Any) -> list[int]:
        """Return the tokens of a saved sequence; raise StateFileError. Any thread."""

    def peek_checkpoints(self, path: Any) -> tuple[int, ...]:
        """Return how many tokens one can go back to, where windows forget. Any thread."""

    def copy_saved(self, source: Any, target: Any, n_tokens: int = -1) -> Any:
        """Write the first tokens of a saved sequence to a file of its own. Any thread."""

    def read_saved(self, path: Any) -> Any:
        """Read and check a saved sequence; raise StateFileError. Any thread."""

    def restore_saved(self, saved: Any, seq_id: int) -> list[int]:
        """Let a sequence remember what was read; return its tokens."""


class Vocab(Protocol):
    """Token ids to bytes."""

    @property
    def n_tokens(self) -> int:
        """Return how many ids there are."""

    @property
    def bos(self) -> int:
        """Return the id that begins a text, or -1."""

    @property
    def ids(self) -> Any:
        """Return the ids with a task: fim_pre, fim_suf, …, -1 where there is none."""

    @property
    def switches(self) -> Any:
        """Return what is added to a text: add_bos, …"""

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
    """A model ready to run, its memory for as many sequences as there are slots, and the forks.

    `make_sampler(request, prompt tokens)` raises RequestError for what cannot be honoured;
    `rank_row(row, token, n)` and `rank_after(sampler, token, n)` rank a token before and after the
    chain; `adopted()` is entered by the engine thread for as long as it runs steps; `n_batch`
    tokens at most go into one step. `forks` are sequences for use in passing.
    `prepare_rest(progress)` makes ready what few answers need; it takes seconds, on any thread,
    unless `progress` raises. After `close` what makes tokens and samplers still works.
    """

    context: Context
    vocab: Vocab
    encode: Callable[[Prompt], list[int]]
    tokenize: Callable[[str], list[int]]
    make_sampler: Callable[[CompletionRequest, Sequence[int]], Sampler]
    rank_row: Callable[[Row, int, int], Ranking]
    rank_after: Callable[[Any, int, int], Ranking]
    n_ctx_slot: int
    n_batch: int
    forks: Sequence[int]
    n_infill: int = 2048  # tokens around a gap that is to be filled
    pooling: str = "mean"
    rank_prompt: Callable[[str, str], list[int]] | None = None  # of a model made for ranking
    stop_words: Sequence[str] = ()
    shifts_context: bool = False  # a full context drops its middle instead of ending the answer
    adopted: Callable[[], AbstractContextManager[None]] = nullcontext
    prepare_rest: Callable[[Callable[[str, float], None]], object] = lambda progress: None
    close: Callable[[], None] = lambda: None
