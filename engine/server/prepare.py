"""Prepares tasks for a model: prompts to token ids, options, gaps and texts too, and samplers."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import ContextFullError, RequestError
from engine.params import RANDOM_SEED, CompletionRequest, Prompt
from engine.server.decision import Options
from engine.server.embedding import Texts
from engine.server.infill import infill_prompt
from engine.server.loaded import Loaded
from engine.server.prefix_tree import common_prefix
from engine.server.rerank import ANSWERS, Pairs, judging
from engine.server.task import Task, TaskKind, decision_task


def prepare(task: Task, loaded: Loaded, n_slots: int) -> None:
    """Make of a task what the engine thread needs of it.

    Raises RequestError, its subclasses TemplateError, GrammarError and ContextFullError, or
    whatever else is wrong with this one request.
    """
    if task.kind is TaskKind.EMBEDDING:
        tokens = [_text_tokens(text, loaded) for text in task.subject.texts]
        task.subject = task.subject.with_tokens(tokens, loaded.pooling)
    elif task.kind is TaskKind.RERANK:
        task.subject = _prepare_ranking(task, loaded, n_slots)
    elif task.kind in (TaskKind.KEEP, TaskKind.EXPORT):
        task.tokens = loaded.encode(task.request.prompt)
    elif task.kind.takes_slot:
        _prepare_prompt(task, loaded, n_slots)


def _prepare_prompt(task: Task, loaded: Loaded, n_slots: int) -> None:
    request = task.request
    if request.n > n_slots:
        raise RequestError(f"{request.n} answers at once need as many slots; there are {n_slots}.")
    if task.kind is TaskKind.INFILL:
        sizes = loaded.n_ctx_slot, min(loaded.n_infill, loaded.n_ctx_slot), request.n_predict
        task.tokens = infill_prompt(task.subject, loaded.vocab, loaded.tokenize, *sizes)
    else:
        task.tokens = loaded.encode(request.prompt)
        task.n_before_question = _n_before_question(request.prompt, task.tokens, loaded)
    check_prompt(task.tokens, loaded)
    if task.kind is TaskKind.DECISION:
        task.subject = Options.read(task.subject, loaded.tokenize)
        longest = max(len(tokens) for tokens in task.subject.tokens)
        check_prompt([*task.tokens, *[0] * (longest - 1)], loaded)
        task.requests, task.samplers = (request,), (None,)  # type: ignore[assignment]
        return
    task.requests = _seeded(request)
    task.samplers = [loaded.make_sampler(each, task.tokens) for each in task.requests]


def _n_before_question(prompt: Prompt, tokens: Sequence[int], loaded: Loaded) -> int:
    """Return how many tokens stand before the last question, 0 where nobody needs to know.

    Told by how the prompt differs when something else is asked. A token less, for the beginning of
    a question may join with what is before it.
    """
    if not getattr(loaded.context.memory, "window", 0) or len(prompt) < 2:
        return 0
    last = prompt[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return 0
    other = "y" if str(last.get("content")).startswith("x") else "x"
    try:
        asked = loaded.encode([*prompt[:-1], {**last, "content": other}])  # type: ignore[arg-type]
    except RequestError:
        return 0
    return max(0, common_prefix(asked, tokens) - 1)


def _prepare_ranking(task: Task, loaded: Loaded, n_slots: int) -> Any:
    """Return the texts for the model's head, or else a decision about each document."""
    pairs: Pairs = task.subject
    if loaded.rank_prompt is not None:
        tokens = [loaded.rank_prompt(pairs.query, each) for each in pairs.documents]
        for each in tokens:
            check_prompt(each, loaded)

        def scores(vectors: list[Any]) -> list[float]:
            return [float(labels[0]) for labels in vectors]

        return Texts(pairs.documents, "rank", -1, tokens, scores)
    decisions = []
    for document in pairs.documents:
        decision = decision_task(task.id, judging(pairs.query, document), ANSWERS)
        prepare(decision, loaded, n_slots)
        decisions.append(decision)
    return decisions


def _seeded(request: CompletionRequest) -> list[CompletionRequest]:
    """Return the request once for each of its answers, each with a seed of its own."""
    seed = request.params.seed
    seed = secrets.randbelow(RANDOM_SEED) if seed == RANDOM_SEED else seed
    return [request.replace(seed=(seed + i) % RANDOM_SEED) for i in range(request.n)]


def check_prompt(tokens: Sequence[int], loaded: Loaded) -> None:
    """Raise RequestError for ids that are no tokens, ContextFullError if there are too many."""
    n_vocab = loaded.vocab.n_tokens
    if not all(0 <= token < n_vocab for token in tokens):
        raise RequestError(f"The prompt contains ids that are no tokens (0 to {n_vocab - 1}).")
    if len(tokens) >= loaded.n_ctx_slot:
        raise ContextFullError(
            f"The prompt has {len(tokens)} tokens and the context holds {loaded.n_ctx_slot}: "
            "shorten the prompt or open the model with a larger context."
        )


def _text_tokens(text: Prompt, loaded: Loaded) -> list[int]:
    tokens = loaded.encode(text)
    if not tokens or (isinstance(text, str) and not text.strip()):
        raise RequestError("There is nothing to embed: a text is empty.")
    check_prompt(tokens, loaded)
    return tokens
