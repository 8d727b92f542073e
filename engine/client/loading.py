"""From a model file to what the engine loop runs on: runtime, vocabulary, template, sampler.

The rooms it joins are imported when a model is opened: they bring NumPy and the kernels, which a
window that only shows conversations does not need.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from engine.params import CompletionRequest, ContextParams, Prompt
from engine.server.loaded import Loaded
from engine.server.loop import Progress
from engine.server.sampler import Sampler

CALLERS_UNITS = ("text", "sampling")  # kernels that no model brings with it
RARE_UNITS = ("sampling.more",)  # nobody waits for these when a model opens
N_FORKS = 8  # sequences beside those of the slots, for work in passing
TEMPLATE_KEYS = ("tokenizer.chat_template", "tokenizer.chat_template.tool_use")
RANK_TEMPLATE = "tokenizer.chat_template.rerank"
_PLACES = re.compile(r"\{(query|document)\}")
POOLINGS = {0: "none", 1: "mean", 2: "cls", 3: "last"}  # as files number them


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

    `params.n_seq_max` are the slots and N_FORKS. Raises ModelFileError, UnsupportedModelError,
    MachineError or RequestError.
    """
    from engine.native import objects
    from engine.runtime import Model
    from engine.sampling import RowRanker, rank_after

    model = Model.load(path, n_gpu_layers, report)
    try:
        objects.load(CALLERS_UNITS, lambda _, done: report("compile kernels", done))
        report("vocabulary", 0.0)
        vocab = model.vocab
        report("context", 0.0)
        context = model.context(params, progress=report)
        report("context", 1.0)
        templates = {key: model.metadata[key] for key in TEMPLATE_KEYS if key in model.metadata}
        pooling = POOLINGS.get(model.metadata.get(f"{model.info.arch}.pooling_type"), "mean")
        rank_prompt = None
        if model.rank_head is not None:
            rank_prompt = _rank_encoder(vocab, model.metadata.get(RANK_TEMPLATE))
        make_sampler = _sampler_maker(vocab, templates)
    except BaseException:
        model.close()
        raise
    ranker = RowRanker(vocab.n_tokens)

    return Loaded(
        context=context,
        vocab=vocab,
        encode=_prompt_encoder(vocab, templates),
        tokenize=lambda text: vocab.tokenize(text, parse_special=False, add_special=False),
        make_sampler=make_sampler,
        rank_row=ranker.rank,
        rank_after=rank_after,
        n_ctx_slot=min(context.n_ctx, model.info.n_ctx_train),
        n_batch=context.n_ubatch,  # see the decision in `engine.server.scheduler`
        forks=range(params.n_seq_max - N_FORKS, params.n_seq_max),
        n_infill=context.n_batch,
        pooling=pooling,
        rank_prompt=rank_prompt,
        shifts_context=context_shift,
        adopted=context.adopted,
        prepare_rest=lambda progress: objects.load(RARE_UNITS, progress),
        close=model.close,
    )


def _sampler_maker(
    vocab: Any, templates: dict[str, Any]
) -> Callable[[CompletionRequest, Sequence[int]], Sampler]:
    """Return the function from a request and its prompt to a sampler; it raises RequestError."""
    from engine.client.constraints import Reasoning, make_matcher
    from engine.sampling import SamplerChain
    from engine.server.constrained import ConstrainedSampler

    sources = (text for text in templates.values() if isinstance(text, str))
    reasoning = Reasoning("".join(sources), vocab)

    def make_sampler(request: CompletionRequest, prompt: Sequence[int]) -> Sampler:
        chain = SamplerChain(request.params, vocab)
        if request.trace:
            chain.trace(request.n_probs)
        return ConstrainedSampler(
            chain,
            make_matcher(request, vocab),
            reasoning.budget(request.reasoning_budget, prompt),
            grammar_first=request.grammar_first,
            after_reasoning=request.json_schema is not None and request.grammar is None,
        )

    return make_sampler


def _prompt_encoder(vocab: Any, templates: dict[str, Any]) -> Callable[[Prompt], list[int]]:
    """Return the function from a request's prompt to token ids; it raises RequestError.

    It needs nothing of the model's file, which may be closed.
    """

    @cache
    def template() -> Any:
        from engine.chat import ChatTemplate

        return ChatTemplate.from_model(templates, vocab)

    def encode(prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return vocab.tokenize(prompt, parse_special=True, add_special=True)
        if not prompt or isinstance(prompt[0], int):
            return list(prompt)  # type: ignore[arg-type]
        is_begun = prompt[-1].get("role") == "assistant"  # type: ignore[union-attr]
        return template().prompt_tokens(prompt, continue_last=is_begun)

    return encode


def _rank_encoder(vocab: Any, template: Any) -> Callable[[str, str], list[int]]:
    """Return the function from a query and a document to token ids for a ranking head."""
    ids, switches = vocab.ids, vocab.switches
    end = ids.eos if ids.eos >= 0 else ids.sep
    before = [vocab.bos] if switches.add_bos else []
    ending = [end] if switches.add_eos else []
    between = [*ending, *([ids.sep] if switches.add_sep else [])]

    def plain(text: str) -> list[int]:
        return vocab.tokenize(text, parse_special=False, add_special=False)

    def encode(query: str, document: str) -> list[int]:
        if isinstance(template, str) and template:
            whole = []
            for i, part in enumerate(_PLACES.split(template)):
                if i % 2:
                    whole += plain(query if part == "query" else document)
                else:
                    whole += vocab.tokenize(part, parse_special=True, add_special=i == 0)
            return whole
        whole = [*before, *plain(query), *between, *plain(document), *ending]
        return [token for token in whole if token >= 0]

    return encode
