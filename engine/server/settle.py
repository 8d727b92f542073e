"""After a decode: each slot samples from its row, its token becomes text, limits end its answer."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import EngineError, InternalError, RequestError
from engine.params import LIVE_LIMITS, CompletionRequest
from engine.server.events import Failed
from engine.server.loaded import Loaded, Row
from engine.server.metrics import Counters
from engine.server.probs import token_probs
from engine.server.prompt_cache import PromptCache
from engine.server.shift import shift_context
from engine.server.slot import Slot, SlotState

log = logging.getLogger(__name__)


class Settler:
    """Takes slots from a row of logits to their next state. Engine thread only."""

    def __init__(
        self,
        loaded: Loaded,
        counters: Counters,
        cache: PromptCache,
        on_release: Callable[[Slot], None],
    ) -> None:
        """`on_release` hears of every slot that is free again."""
        self._loaded = loaded
        self._counters = counters
        self._cache = cache
        self._on_release = on_release
        self._eog_ids = frozenset(int(token) for token in loaded.vocab.eog_ids)

    def stop_words(self, request: CompletionRequest) -> list[str]:
        """Return the request's and the model's stop words, each once."""
        return list(dict.fromkeys((*request.stop, *self._loaded.stop_words)))

    def hear(self, slot: Slot) -> None:
        """Do what the caller wished since the last token: stop, or go on with other parameters."""
        assert slot.task is not None
        if slot.task.is_given_up:
            self.finish(slot, "cancelled")
            return
        for changes in slot.wishes():
            self._change(slot, changes)

    def _change(self, slot: Slot, changes: Mapping[str, Any]) -> None:
        """Go on with other parameters; an impossible wish is not worth losing the answer."""
        assert slot.sampler is not None
        try:
            slot.sampler.update(**{k: v for k, v in changes.items() if k not in LIVE_LIMITS})
        except RequestError:
            log.warning("slot %d keeps its parameters", slot.id, exc_info=True)
            return
        if "reasoning_budget" in changes:
            slot.sampler.limit_reasoning(changes["reasoning_budget"])
        slot.request = slot.request.replace(**changes)
        slot.changes.append((len(slot.generated), dict(changes)))
        slot.emitter.use_stop_words(self.stop_words(slot.request))

    def take_row(self, slot: Slot, row: Row) -> None:
        """Sample from a row of logits; an error ends this slot only."""
        try:
            if slot.state is SlotState.DONE_PROMPT:
                self.begin_generating(slot)
            self.hear(slot)
            if slot.is_idle:
                return
            if slot.request.n_predict == 0:
                self.finish(slot, "limit")
            else:
                self._take_token(slot, row)
        except Exception as error:
            log.exception("slot %d failed", slot.id)
            self.fail(slot, as_engine_error(error))

    def begin_generating(self, slot: Slot) -> None:
        """The prompt of a slot is in memory: count it, and let the sampler learn it."""
        slot.read_at = time.monotonic()
        slot.state = SlotState.GENERATING
        self._counters.add_prompt(slot.timings())
        if slot.sampler is not None:
            slot.sampler.accept_all(slot.prompt)

    def _take_token(self, slot: Slot, row: Row) -> None:
        assert slot.sampler is not None
        token = int(slot.sampler.apply(row))
        slot.sampler.accept(token)
        slot.last_token_at = time.monotonic()
        slot.first_token_at = slot.first_token_at or slot.last_token_at
        slot.generated.append(token)
        probs = token_probs(slot, token, row, self._loaded)
        slot.probs.extend(probs)
        is_eog = token in self._eog_ids
        piece = b"" if is_eog else self._loaded.vocab.piece(token, special=False)
        text = slot.emitter.feed(piece)
        stop_type = "eos" if is_eog else self._stop(slot, text)
        if stop_type:
            text += slot.emitter.finish()
        slot.send_text(text, (token,), probs)
        if stop_type:
            self.finish(slot, stop_type)
        slot.sampled = token

    def _stop(self, slot: Slot, text: str) -> str:
        """Return the stop type that the text, the grammar or a limit asks for, or ""."""
        request, emitter = slot.request, slot.emitter
        if emitter.stop_word:
            return "word"
        if slot.sampler is not None and slot.sampler.must_end:
            return "eos"
        if len(slot.tokens) + 1 >= slot.n_ctx and not self._shift(slot):
            slot.is_truncated = True
            return "limit"
        if 0 <= request.n_predict <= len(slot.generated) or emitter.is_cut:
            return "limit"
        t_ms = (slot.last_token_at - slot.first_token_at) * 1000
        return "limit" if 0 < request.t_max_predict_ms < t_ms and "\n" in text else ""

    def _shift(self, slot: Slot) -> bool:
        loaded = self._loaded
        return loaded.shifts_context and shift_context(
            slot, loaded.context.memory, loaded.vocab.bos, self._cache.make_room
        )

    def finish(self, slot: Slot, stop_type: str) -> None:
        """End an answer well: held-back text, then the last event, with the slot already free."""
        if held := slot.emitter.finish():
            slot.send_text(held)
        if stop_type == "word" and slot.probs:  # a stop word is no part of the answer
            n_tokens = len(self._loaded.tokenize(slot.emitter.stop_word))
            del slot.probs[max(0, len(slot.probs) - n_tokens) :]
        last, mailbox = slot.finished(stop_type), self._mailbox(slot)
        self._release(slot)
        mailbox.deliver(last)

    def fail(self, slot: Slot, error: EngineError, *, forgets: bool = False) -> None:
        """End an answer by an error; `forgets` empties the slot's memory too."""
        waiting = [child for child in slot.children if child.state is SlotState.WAIT_OTHER]
        for failed in (slot, *waiting):
            if held := failed.emitter.finish():
                failed.send_text(held)
            last, mailbox = Failed(error.kind, str(error), failed.index), self._mailbox(failed)
            if forgets:
                self._forget(failed)
            self._release(failed)
            mailbox.deliver(last)

    def _mailbox(self, slot: Slot) -> Any:
        assert slot.task is not None
        return slot.task.mailbox

    def _forget(self, slot: Slot) -> None:
        try:
            self._cache.forget(slot)
        except Exception:
            log.exception("the memory of slot %d could not be emptied", slot.id)
            slot.truncate(0)

    def _release(self, slot: Slot) -> None:
        self._counters.add_answer(slot.timings())
        if slot.parent is not None:
            self._forget(slot)
        slot.release()
        self._on_release(slot)


def as_engine_error(error: BaseException) -> EngineError:
    """Return an error of the tree: itself, or an InternalError that names what happened."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, MemoryError):
        return InternalError("There is not enough memory to go on; use a smaller context.")
    return InternalError(f"The engine made a mistake ({type(error).__name__}: {error}).")
