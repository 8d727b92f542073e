"""One step of the engine: hear wishes, start prompts, gather a batch, decode, settle.

Running answers come first, one token each, then prompt pieces; nothing that runs is ever pushed
out for something new.

Decision: a step takes one ubatch of tokens at most, not a whole n_batch, and MIXED_TOKENS while
answers run: a long prompt costs the others a stutter per piece, so pieces are short then.

Decision: when not even one token fits, the slot it belongs to ends, and no other. Memory that
ran out is nobody's fault, and the others may still fit.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from engine.errors import ContextFullError, EngineError, MachineError, RequestError
from engine.server.batch import Batch, Part
from engine.server.branches import read_branches
from engine.server.known_places import LEAST_LOSS
from engine.server.loaded import Loaded
from engine.server.mailbox import Mailbox
from engine.server.metrics import Counters
from engine.server.prefix_tree import common_prefix
from engine.server.prompt_cache import PromptCache
from engine.server.settle import Settler, as_engine_error
from engine.server.slot import Slot, SlotState
from engine.server.task import Task, TaskKind

log = logging.getLogger(__name__)

MIXED_TOKENS = 128
WORTH_ABORTING = 16  # tokens of a part; shorter steps end soon enough by themselves


class _Aborted(Exception):
    """The decode was stopped on purpose."""


class Scheduler:
    """The slots and the step that moves them all. Engine thread only."""

    def __init__(
        self,
        loaded: Loaded,
        slots: Sequence[Slot],
        cache: PromptCache,
        counters: Counters,
        on_release: Callable[[Slot], None],
    ) -> None:
        self.slots = slots
        self._counters = counters
        self._cache = cache
        self._loaded = loaded
        self._context = loaded.context

        def release(slot: Slot) -> None:
            cache.known.note(slot)
            on_release(slot)

        self._settler = Settler(loaded, counters, cache, release)
        self._flight = threading.Lock()
        self._in_flight = Batch()
        self._is_abort_pending = False

    @property
    def is_busy(self) -> bool:
        """Return whether any slot has a request."""
        return any(not slot.is_idle for slot in self.slots)

    def interrupt(self, mailbox: Mailbox | None = None) -> None:
        """Stop the decode in progress if it reads a long piece for this request, or for anyone.

        For any thread. What the decode was doing is done again for the others.
        """
        with self._flight:
            for part in self._in_flight.parts:
                is_meant = mailbox is None or (part.slot.task and part.slot.task.mailbox is mailbox)
                if is_meant and len(part.tokens) > WORTH_ABORTING:
                    self._is_abort_pending = True
                    self._context.abort()
                    return

    # ------------------------------------------------------------- launching

    def launch(self, task: Task, chosen: Sequence[Slot]) -> None:
        """Start a task: its first answer in the first slot, the others wait for its prompt."""
        for i, slot in enumerate(chosen):
            slot.launch(task, self._settler.stop_words(task.requests[i]), i)
        parent, *children = chosen
        parent.children = children
        for child in children:
            child.parent, child.state = parent, SlotState.WAIT_OTHER

    def end_all(self) -> None:
        """End every running answer as cancelled."""
        for slot in self.slots:
            if not slot.is_idle:
                self._settler.finish(slot, "cancelled")

    def fail_all(self, error: EngineError) -> None:
        """End every running answer by an error and forget what memory may hold of it."""
        for slot in self.slots:
            if not slot.is_idle:
                self._settler.fail(slot, error, forgets=True)

    # ------------------------------------------------------------- one step

    def step(self) -> bool:
        """Move every busy slot on by one decode; False if all of them wait for a file."""
        for slot in self.slots:
            if not slot.is_idle and slot.state is not SlotState.GENERATING:  # that one just did
                self._guarded(slot, self._settler.hear)
            if slot.state is SlotState.STARTED:
                self._guarded(slot, self._start_prompt)
        batch = self._gather()
        if batch.parts:
            self._decode(batch)
        return bool(batch.parts) or not any(slot.arriving for slot in self.slots)

    def _guarded(self, slot: Slot, act: Callable[[Slot], None]) -> None:
        try:
            act(slot)
        except Exception as error:
            log.exception("slot %d failed", slot.id)
            self._settler.fail(slot, as_engine_error(error), forgets=True)

    def _start_prompt(self, slot: Slot) -> None:
        """Begin behind what is known of the prompt; answer at once if that is all of it."""
        if self._is_being_read(slot):
            return
        n_past = self._cache.bring(slot)
        if n_past is None:
            return
        slot.n_cached = n_past
        slot.state = SlotState.PROCESSING_PROMPT
        slot.send_progress()
        if slot.n_prompt_left == 0:
            self._end_prompt(slot, slot.known_row())

    def _is_being_read(self, slot: Slot) -> bool:
        """Return whether another slot is just reading what this one would read too.

        That one stops where they part, for a window would not reach back to there later.
        """
        slot.meeting = None
        if not slot.request.cache_prompt:
            return False
        n_read = n_shared = 0
        reader = slot
        for other in self.slots:
            if other.state is SlotState.PROCESSING_PROMPT:
                n = common_prefix(other.prompt, slot.prompt)
                if n > n_shared:
                    reader, n_read, n_shared = other, other.n_cached + other.n_read, n
        if n_shared < len(reader.prompt):  # else its last logits are worth waiting for
            n_shared = min(n_shared, len(slot.prompt) - 1)
        if n_shared <= n_read or n_shared < LEAST_LOSS:
            return False
        best = next(iter(self._cache.known.best_of(slot.prompt)), (slot, 0))
        if n_shared - best[1] < LEAST_LOSS:
            return False
        slot.meeting = reader, n_shared
        return True

    def _n_until_stop(self, slot: Slot, start: int) -> int:
        """Return how many tokens a slot may read at once before windows must be held as they are.

        That is where another slot goes on, and where the last question begins.
        """
        if not self._cache.known.has_window:
            return len(slot.prompt)
        meetings = (other.meeting for other in self.slots if other.state is SlotState.STARTED)
        ends = [end for reader, end in filter(None, meetings) if reader is slot]
        ends += [slot.task.n_before_question] if slot.task is not None else []
        return min((end for end in ends if end > start), default=len(slot.prompt)) - start

    def _gather(self) -> Batch:
        """Return one token of each generating slot, then prompt pieces within the budget."""
        parts = [
            Part(slot, [slot.sampled], len(slot.tokens), True)
            for slot in self.slots
            if slot.state is SlotState.GENERATING
        ]
        n_most = min(self._loaded.n_batch, MIXED_TOKENS) if parts else self._loaded.n_batch
        n_left = n_most - len(parts)
        for slot in self.slots:
            if slot.state is SlotState.PROCESSING_PROMPT and n_left > 0:
                start = slot.n_cached + slot.n_read
                n_most = min(n_left, self._n_until_stop(slot, start))
                piece = slot.prompt[start : start + n_most]
                n_left -= len(piece)
                parts.append(Part(slot, piece, start, start + len(piece) == len(slot.prompt)))
        return Batch(parts)

    # ------------------------------------------------------------- decoding

    def _decode(self, batch: Batch) -> None:
        """Decode a batch; halve what does not fit; keep an error to the slot it belongs to."""
        n_max = self._loaded.n_batch
        while batch.parts:
            head, rest = batch.take(n_max)
            try:
                logits = self._run(head)
            except _Aborted:
                self._undo(head)
                return
            except (ContextFullError, MachineError) as error:
                self._undo(head)
                if self._cache.make_room():
                    continue
                if head.n_tokens > 1:
                    n_max = head.n_tokens // 2
                    continue
                self._give_up(head.slots[0], error)
                batch = Batch([part for part in batch.parts if not part.slot.is_idle])
            except Exception as error:
                log.exception("a decode of %d tokens failed", head.n_tokens)
                self._undo(head)
                self._isolate(head, as_engine_error(error))
                batch = Batch([part for part in rest.parts if not part.slot.is_idle])
            else:
                self._settle(head, logits)
                batch, n_max = rest, self._loaded.n_batch

    def _run(self, batch: Batch) -> object:
        """Decode a batch; raises _Aborted if `interrupt` stopped it, else what went wrong."""
        tokens, positions, seq_ids, rows = batch.arrays()
        with self._flight:
            self._in_flight = batch
        try:
            return self._context.decode(tokens, positions, seq_ids, want=rows)
        except RequestError as error:
            if not self._is_abort_pending or isinstance(error, ContextFullError):
                raise
            raise _Aborted from error
        finally:
            with self._flight:
                self._in_flight = Batch()
                if self._is_abort_pending:  # one that came too late must not stop what is next
                    self._context.forget_abort()
                self._is_abort_pending = False

    def _undo(self, batch: Batch) -> None:
        """Take out of memory what a failed decode may have left there."""
        for slot in batch.slots:
            self._context.memory.seq_rm(slot.id, len(slot.tokens), -1)

    def _give_up(self, slot: Slot, error: EngineError) -> None:
        """One token does not fit: an answer ends here, a prompt is refused."""
        if slot.state is SlotState.GENERATING and isinstance(error, ContextFullError):
            slot.is_truncated = True
            self._settler.finish(slot, "limit")
        else:
            self._settler.fail(slot, error, forgets=True)

    def _isolate(self, batch: Batch, error: EngineError) -> None:
        """Decode each slot of a failed batch alone, so that only the guilty one fails."""
        if len(batch.slots) == 1:
            self._settler.fail(batch.slots[0], error, forgets=True)
            return
        for slot in batch.slots:
            self._decode(batch.of(slot))

    def _settle(self, batch: Batch, logits: object) -> None:
        """Record what is in memory now and let each slot sample from its row."""
        for part in batch.parts:
            part.slot.tokens.extend(part.tokens)
        self._counters.add_decode(len(batch.slots), max(len(s.tokens) for s in batch.slots))
        i_row = 0
        for part in batch.parts:
            slot = part.slot
            if slot.state is SlotState.PROCESSING_PROMPT:
                slot.n_read += len(part.tokens)
                if slot.task is not None and len(slot.tokens) == slot.task.n_before_question:
                    self._cache.mark(slot)
                slot.send_progress()
            if not part.wants_logits:
                continue
            row = logits[i_row]  # type: ignore[index]
            i_row += 1
            if slot.state is SlotState.GENERATING:
                self._settler.take_row(slot, row)
            else:
                slot.keep_prompt_row(row.copy())  # a view would keep every row of the step
                self._end_prompt(slot, row)

    def _end_prompt(self, slot: Slot, row: object) -> None:
        """The prompt is in memory: share it with the children, then all sample their first."""
        slot.state = SlotState.DONE_PROMPT
        self._cache.mark(slot)
        if slot.task is not None and slot.task.kind is TaskKind.DECISION:
            self._guarded(slot, lambda decider: self._decide(decider, row))
            return
        for child in slot.children:
            self._guarded(child, self._copy_parent)
        for ready in (slot, *slot.children):
            if ready.state is SlotState.DONE_PROMPT:
                self._settler.take_row(ready, row)

    def _decide(self, slot: Slot, row: object) -> None:
        """Weigh the options behind the prompt and answer."""
        task = slot.task
        assert task is not None
        self._settler.begin_generating(slot)
        rows = {(): row, **read_branches(slot, task.subject.branches, self._loaded, self._cache)}
        rank = self._loaded.rank_row
        decision = task.subject.decide(
            lambda before, token: rank(rows[before], token, 0).logprob, slot.timings()
        )
        self._settler.finish(slot, "eos")
        task.reply.set_result(decision)

    def _copy_parent(self, child: Slot) -> None:
        if child.state is not SlotState.WAIT_OTHER or child.parent is None:
            return
        parent, memory = child.parent, self._context.memory
        memory.seq_rm(child.id, 0, -1)
        memory.seq_cp(parent.id, child.id, 0, -1)
        child.truncate(0)
        child.tokens = list(parent.tokens)
        child.n_cached, child.n_read = parent.n_cached + parent.n_read, 0
        child.state = SlotState.DONE_PROMPT
