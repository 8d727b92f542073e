"""Context.decode: where a model, the memory of its sequences and the compute team meet."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu import cores
from engine.compute.cpu.plan import Tapes
from engine.compute.cpu.plan_shift import shift_tape
from engine.compute.cpu.signatures import MULTI_ROWS, PAGE_CELLS
from engine.compute.cpu.team import Team
from engine.compute.cpu.workspace import LayerPages, Workspace
from engine.errors import InternalError, MachineError, RequestError
from engine.memory import (
    MODEL_NAME,
    Memory,
    Placement,
    SavedSequence,
    Snapshot,
    copy_sequence,
    peek_sequence,
    read_sequence,
    restore_sequence,
)
from engine.models import kv_layers
from engine.native.buffers import address
from engine.params import ContextParams
from engine.runtime.batch import Batch, make_batch, make_passing_batch, passing_piece
from engine.runtime.embedding import Embedding
from engine.runtime.fingerprint import rotation_hash
from engine.runtime.pooling import RANK, Pooled, find_pooling

if TYPE_CHECKING:
    from engine.runtime.model import Model


class Context:
    """Memory, buffers and tapes of one use of a model. One thread at a time; a context manager.

    `memory` holds the sequences 0 .. n_seq_max-1, `n_ctx` cells in all.
    """

    def __init__(
        self,
        model: "Model",
        params: ContextParams,
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        self.model = model
        self.n_ctx = model.n_ctx_of(params.n_ctx)
        self.n_batch = min(params.n_batch, self.n_ctx)
        self.n_ubatch = min(params.n_ubatch, self.n_batch)
        self.n_vocab = model.hparams.n_vocab
        self.n_threads = params.n_threads or cores.n_physical()
        self.n_threads_batch = params.n_threads_batch or self.n_threads
        self._layers = model.layers_for(self.n_ctx)
        kv = (params.type_k, params.type_v)
        self.memory = Memory(
            kv_layers(self._layers),
            self.n_ctx,
            params.n_seq_max,
            *kv,
            n_batch=self.n_batch,
            snapshot_bytes=params.cache_ram << 20,
        )
        self._kernels = model.kernels_for(*kv, progress)
        graph = model.graph_for(self._layers)
        n_threads = max(self.n_threads, self.n_threads_batch)
        try:
            self._workspace = self._make_workspace(graph, n_threads, ".".join(kv))
        except MemoryError as error:
            raise MachineError(
                "This machine has too little memory for this context: choose a smaller n_ubatch."
            ) from error
        self._tapes = Tapes(graph, self._workspace, self._kernels)
        self._embedding_tapes: Tapes | None = None
        self._team = Team(n_threads, kernels=self._kernels)
        self._fingerprint = {
            "architecture": model.info.arch,
            MODEL_NAME: model.info.name or model.info.arch,
            "model": model.fingerprint,
            "memory type": "/".join(kv),
            "rotation": rotation_hash(self._layers),
            "page layout": f"{PAGE_CELLS} cells, K by position, blocks rotated",
        }
        self._abort_lock = threading.Lock()
        self._is_unstoppable = self._is_abort_due = False
        self._is_open = True

    def _make_workspace(self, graph: Any, n_threads: int, kv_types: str) -> Workspace:
        pages: dict[int, LayerPages] = {}
        for i_pool, pool in enumerate(self.memory.pools):
            shape = pool.shape
            for layer, k, v in zip(pool.layer_ids, pool.k, pool.v, strict=True):
                pages[layer] = LayerPages(
                    i_pool,
                    shape.n_head_kv,
                    shape.head_size_k,
                    shape.head_size_v,
                    shape.window,
                    kv_types,
                    address(k),
                    k.strides[0],
                    address(v),
                    v.strides[0],
                )
        by_layer = [pages[i] for i in range(len(pages))]
        positions = [address(pool.positions) for pool in self.memory.pools]
        tensors = self.model.tensors
        return Workspace(graph, tensors, by_layer, positions, self.n_ubatch, n_threads)

    # ---- decoding

    def decode(
        self, tokens: Any, positions: Any = None, seq_ids: Any = 0, want: Any = "last"
    ) -> NDArray[np.float32]:
        """Run tokens through the model and remember them; return logits [n_wanted, n_vocab].

        `tokens` are ids; `positions` go on from what each sequence remembers (the default);
        `seq_ids` is one id or one per token; `want` is "last", "all" or a list of row indices.
        Any number of tokens: they run in pieces of n_ubatch. Raises RequestError for a batch that
        cannot be, ContextFullError when it does not fit; then nothing has changed.
        """
        batch = make_batch(tokens, positions, seq_ids, want, self.memory, self.n_vocab)
        logits = self._run(batch, self._tapes, self.n_vocab)
        return logits if batch.order is None else logits[batch.order]

    def embed(self, tokens: Any, pooling: str | None = None) -> NDArray[np.float32]:
        """Return the last hidden state of each token, [n, n_embd], or pooled to [1, n_embd].

        `pooling` is "none", "mean", "cls" (the first), "last", or None for the model's own: most
        generators say nothing, which is "none". One made for ranking has "rank": scores of its
        labels, [1, n_labels]. No sequence changes. Raises as `decode`.
        """
        run = self.embedding(tokens, pooling)
        try:
            while not run.step(self.n_batch):
                pass
        finally:
            self.memory.forget_spare()
        return run.result()

    def embedding(self, tokens: Any, pooling: str | None = None) -> Embedding:
        """Begin to embed a text, to be read piece by piece, while other work goes on.

        It lies in the spare sequence until the next one begins, or `memory.forget_spare`. Raises
        RequestError for a text that cannot be, ContextFullError for one longer than the context.
        """
        head = self.model.rank_head
        kind = find_pooling(pooling, self.model.hparams.pooling, has_head=head is not None)
        self.memory.forget_spare()
        batch = make_passing_batch(tokens, self.memory, self.n_vocab)
        self.memory.check_length(batch.segments)
        if self._embedding_tapes is None:
            graph = self.model.graph_for(self._layers, is_embedding=True)
            self._embedding_tapes = Tapes(graph, self._workspace, self._kernels)
        tapes, width = self._embedding_tapes, self.model.hparams.n_embd

        def read(piece: NDArray[np.int32], start: int, rows: NDArray[np.int32]) -> Any:
            return self._run(passing_piece(piece, start, rows, self.memory), tapes, width)

        return Embedding(batch.tokens, Pooled(kind, head if kind == RANK else None), read)

    def _run(self, batch: Batch, tapes: Tapes, width: int) -> NDArray[np.float32]:
        """Remember the rows of a batch and compute the wanted ones: [n_outputs, width]."""
        if not self._is_open:
            raise InternalError("This context is closed.")
        self._settle_shifts()
        self.memory.check_length(batch.segments)
        answer = np.empty((len(batch.outputs), width), np.float32)
        with self._kept_on_failure(batch):
            for piece, outputs in batch.pieces(self.n_batch):
                self._run_piece(piece, tapes, answer[outputs])
        return answer

    @contextlib.contextmanager
    def _kept_on_failure(self, batch: Batch) -> Iterator[None]:
        """Let the sequences of a long batch be as they were if the block fails.

        Windows forget while it is read; a batch of one piece is taken back by itself.
        """
        if len(batch.tokens) <= self.n_batch:
            yield
            return
        ids = [one.seq_id for one in batch.segments if one.seq_id != self.memory.spare]
        before = {seq_id: self.memory.snapshot(seq_id) for seq_id in ids}
        try:
            yield
        except BaseException:
            for seq_id, snapshot in before.items():
                self.memory.restore(snapshot, seq_id)
            raise
        finally:
            for snapshot in before.values():
                snapshot.release()

    def _run_piece(self, batch: Batch, tapes: Tapes, answer: NDArray[np.float32]) -> None:
        """Place at most n_batch rows and compute the wanted ones into `answer`."""
        placement = self.memory.place(batch.segments, batch.positions, batch.tokens)
        try:
            n = len(batch.tokens)
            for start in range(0, n, self.n_ubatch):
                bounds = (start, min(n, start + self.n_ubatch))
                self._run_ubatch(batch, placement, tapes, bounds, answer)
        except BaseException:
            self.memory.take_back(placement)
            raise

    def _run_ubatch(
        self,
        batch: Batch,
        placement: Placement,
        tapes: Tapes,
        bounds: tuple[int, int],
        answer: NDArray[np.float32],
    ) -> None:
        start, end = bounds
        blocks = self._workspace.blocks
        first_output, end_output = 0, len(batch.outputs)
        if end - start < len(batch.tokens):
            first_output, end_output = np.searchsorted(batch.outputs, bounds).tolist()
        outputs = batch.outputs[first_output:end_output]
        blocks.set_rows(batch.tokens[start:end], batch.positions[start:end], outputs - start)
        rows = np.arange(start, end, dtype=np.int32)
        for i_pool in range(len(self.memory.pools)):
            runs = self.memory.runs(i_pool, placement, rows)
            output_runs = runs
            if len(outputs) < len(rows):
                output_runs = self.memory.runs(i_pool, placement, outputs)
            blocks.set_pool(i_pool, placement.cells[i_pool][start:end], runs, output_runs)
        tape = tapes.find(end - start, len(outputs))
        tape.aim(address(answer) + first_output * answer.strides[0])
        is_small = end - start <= MULTI_ROWS
        if not self._team.run(tape.ops, self.n_threads if is_small else self.n_threads_batch):
            raise RequestError("The decode was stopped.")

    def _settle_shifts(self) -> None:
        """Turn the stored K of cells whose positions have moved since the last decode."""
        for pool, pages, deltas in self.memory.shifted_pages():
            rotations = [(i, self._layers[i].rotation) for i in pool.layer_ids]
            tape = shift_tape(self._workspace, self._kernels, rotations, pages, deltas)
            with self._not_aborted():
                self._team.run(tape.ops, self.n_threads_batch)
            pool.settle_shifts()

    @contextlib.contextmanager
    def _not_aborted(self) -> Iterator[None]:
        """Let what runs inside the block run to its end; an abort is for what comes next.

        K that has been turned in half of its layers could be turned neither on nor back.
        """
        with self._abort_lock:
            self._is_unstoppable = True
            self._is_abort_due = self._team.forget_abort()
        try:
            yield
        finally:
            with self._abort_lock:
                self._is_unstoppable = False
                if self._is_abort_due:
                    self._team.abort()

    # ---- what is kept of a sequence

    def snapshot_sequence(self, seq_id: int) -> Snapshot:
        """Hold what a sequence remembers now: see `engine.memory`. No byte of K or V is copied.

        Raises RequestError for an unknown sequence.
        """
        self.memory.seq_pos_max(seq_id)
        self._settle_shifts()
        return self.memory.snapshot(seq_id, self._fingerprint)

    def restore_snapshot(self, snapshot: Snapshot, seq_id: int) -> list[int]:
        """Let a sequence remember what a snapshot of this context holds; return its tokens.

        The pages are shared, no byte is copied. Raises RequestError for an unknown sequence,
        InternalError for a snapshot that was released.
        """
        self.memory.restore(snapshot, seq_id)
        return snapshot.tokens.tolist()

    def save_sequence(self, seq_id: int, path: str | os.PathLike[str]) -> None:
        """Write what a sequence remembers to a file, in one step; an older file is replaced.

        Raises RequestError for an unknown sequence, MachineError if it cannot be stored.
        """
        snapshot = self.snapshot_sequence(seq_id)
        try:
            snapshot.write(path)
        finally:
            snapshot.release()

    def read_saved(self, path: str | os.PathLike[str]) -> SavedSequence:
        """Read a saved sequence and hold it against this context; any thread may.

        Raises StateFileError with the reason for a file that is missing, damaged or foreign.
        """
        return read_sequence(Path(path), self._fingerprint, self.memory.pools, self.n_vocab)

    def peek_saved(self, path: str | os.PathLike[str]) -> list[int]:
        """Return the tokens of a saved sequence without reading its pages; any thread may.

        Raises StateFileError with the reason for a file that is missing, cut or foreign.
        """
        return self._peek(path).tokens.tolist()

    def peek_checkpoints(self, path: str | os.PathLike[str]) -> tuple[int, ...]:
        """Return how many tokens one can go back to in a saved sequence, where windows forget.

        Any thread may; raises as `peek_saved`.
        """
        return self._peek(path).checkpoints

    def _peek(self, path: str | os.PathLike[str]) -> SavedSequence:
        return peek_sequence(Path(path), self._fingerprint, self.n_vocab)

    def copy_saved(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str], n_tokens: int = -1
    ) -> SavedSequence:
        """Write the first tokens of a saved sequence (-1: all) to a file of its own; return them.

        Nothing else that the source holds goes along. Any thread may. Raises StateFileError with
        the reason for a source that is damaged or foreign, MachineError if it cannot be stored.
        """
        saved = self.read_saved(source)
        return copy_sequence(saved, Path(target), self.memory.pools, n_tokens)

    def restore_saved(self, saved: SavedSequence, seq_id: int) -> list[int]:
        """Let a sequence remember what was read from a file; return its tokens.

        Raises StateFileError, the context unchanged, if it does not fit beside the others.
        """
        self.memory.seq_pos_max(seq_id)
        restore_sequence(self.memory, seq_id, saved)
        return saved.tokens.tolist()

    def restore_sequence(self, seq_id: int, path: str | os.PathLike[str]) -> list[int]:
        """Let a sequence remember what a file holds; return its tokens.

        Raises StateFileError with the reason for a file that is damaged, foreign or too long; then
        the context is unchanged.
        """
        return self.restore_saved(self.read_saved(path), seq_id)

    # ---- life

    @contextlib.contextmanager
    def adopted(self) -> Iterator[None]:
        """Let the calling thread be a member of the team inside the block: the engine thread."""
        with self._team.adopted():
            yield

    def abort(self) -> None:
        """Stop the decode in progress; it raises RequestError and its batch is forgotten.

        Without one in progress the next is stopped, unless `forget_abort` comes before. Another
        thread may call it.
        """
        with self._abort_lock:
            self._is_abort_due = True
            if not self._is_unstoppable:
                self._team.abort()

    def forget_abort(self) -> None:
        """Let the next decode be as if `abort` had not been called: it was meant for the last."""
        self._team.forget_abort()

    def close(self) -> None:
        """Join the team and give the memory back; closing again does nothing."""
        if self._is_open:
            self._is_open = False
            self._team.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
