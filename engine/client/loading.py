"""From a model file to what the engine loop runs on: runtime, vocabulary, template, sampler.

The rooms it joins are imported when a model is opened: they bring NumPy and the compiler's loader,
which a window that only shows conversations does not need.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from engine.errors import GrammarError, RequestError
from engine.params import CompletionRequest, ContextParams, Prompt
from engine.server.loaded import Loaded
from engine.server.loop import Progress
from engine.server.slot import Sampler

CALLERS_UNITS = ("text", "sampling", "sampling.more")  # kernels that no model brings with it


def check_model(path: str) -> Any:
    """Return what a model file says of itself, read from its header.

    Raises ModelFileError or UnsupportedModelError.
    """
    from engine.runtime import read_model_info

    return read_model_info(path)


def load_model(
    path: str,
    params: ContextParams,
    report: Progress,
    n_gpu_layers: int = 0,
    context_shift: bool = False,
) -> Loaded:
    """Load weights, kernels, vocabulary, context; `report(stage, 0..1)` may raise to give up.

    Raises ModelFileError, UnsupportedModelError, MachineError or RequestError.
    """
    from engine.native import objects
    from engine.runtime import Model
    from engine.sampling import RowRanker, SamplerChain, rank_after

    model = Model.load(path, n_gpu_layers, report)
    try:
        objects.load(CALLERS_UNITS, lambda _, done: report("compile kernels", done))
        report("vocabulary", 0.0)
        vocab = model.vocab
        report("context", 0.0)
        context = model.context(params)
        report("context", 1.0)
    except BaseException:
        model.close()
        raise
    ranker = RowRanker(vocab.n_tokens)

    def make_sampler(request: CompletionRequest) -> Sampler:
        _refuse_unbuilt(request)
        return SamplerChain(request.params, vocab)

    return Loaded(
        context=context,
        vocab=vocab,
        encode=_prompt_encoder(model),
        tokenize=lambda text: vocab.tokenize(text, parse_special=False, add_special=False),
        make_sampler=make_sampler,
        rank_row=ranker.rank,
        rank_after=rank_after,
        n_ctx_slot=min(context.n_ctx, model.info.n_ctx_train),
        n_batch=context.n_ubatch,  # see the decision in `engine.server.scheduler`
        shifts_context=context_shift,
        adopted=context.adopted,
        close=model.close,
    )


def _prompt_encoder(model: Any) -> Callable[[Prompt], list[int]]:
    """Return the function from a request's prompt to token ids; it raises RequestError."""
    vocab = model.vocab

    @cache
    def template() -> Any:
        from engine.chat import ChatTemplate

        return ChatTemplate.from_model(model.metadata, vocab)

    def encode(prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return vocab.tokenize(prompt, parse_special=True, add_special=True)
        if not prompt or isinstance(prompt[0], int):
            return list(prompt)  # type: ignore[arg-type]
        is_begun = prompt[-1].get("role") == "assistant"  # type: ignore[union-attr]
        return template().prompt_tokens(prompt, continue_last=is_begun)

    return encode


def _refuse_unbuilt(request: CompletionRequest) -> None:
    """Refuse what this version would have to ignore."""
    for name in ("grammar", "json_schema", "regex"):
        if getattr(request, name) is not None:
            raise GrammarError(f"This version cannot hold an answer to a {name} yet; leave it out.")
    if request.reasoning_budget >= 0:
        raise RequestError("This version cannot limit reasoning yet; leave “reasoning_budget” out.")
