"""Reranking: how well each document answers a query, by the model's own head or by its judgement.

A model made for ranking has a head that scores query and document together. Any other is asked of
each document whether it answers the query; the score is how likely its yes is.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from engine.params import Message
from engine.server.decision import Decision
from engine.server.task import Task

INSTRUCTION = "Judge whether the document answers the query. Say only Yes or No."
ANSWERS = ("Yes", "No")


@dataclass(frozen=True)
class Ranked:
    """One document by its index in what was given.

    `score` is how likely it answers the query, 0 to 1; of a model made for ranking it is what its
    head says, higher is better.
    """

    index: int
    score: float


@dataclass(frozen=True)
class Pairs:
    """A query and the documents that are to be ranked by it."""

    query: str
    documents: Sequence[str]


def judging(query: str, document: str) -> list[Message]:
    """Return the question to the model.

    The query comes before the document, so that all documents share it.
    """
    question = f"Query: {query}\n\nDocument: {document}\n\nDoes the document answer the query?"
    return [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": question},
    ]


def ranked(scores: Sequence[float]) -> list[Ranked]:
    """Return the documents with their scores, the highest first."""
    return sorted((Ranked(*each) for each in enumerate(scores)), key=lambda one: -one.score)


class Judgement:
    """The decisions about the documents of one task, a few at a time. Engine thread only."""

    def __init__(
        self, task: Task, decisions: Sequence[Task], launch: Callable[[Task], None]
    ) -> None:
        self._task = task
        self._waiting = deque(decisions)
        self._replies: list[Future[Decision]] = [each.reply for each in decisions]
        self._launch = launch

    def start(self, n_at_once: int) -> None:
        """Launch the first decisions; each that ends launches the next."""
        if not self._replies:
            self._task.reply.set_result([])
        for _ in range(n_at_once):
            self._next()

    def _next(self) -> None:
        if self._waiting and not self._task.reply.done():
            decision = self._waiting.popleft()
            decision.reply.add_done_callback(self._on_done)
            self._launch(decision)

    def _on_done(self, done: "Future[Any]") -> None:
        if self._task.reply.done():
            return
        if (error := done.exception()) is not None:
            self._task.reply.set_exception(error)
        elif all(reply.done() for reply in self._replies):
            scores = [reply.result().probabilities[0] for reply in self._replies]
            self._task.reply.set_result(scores)
        else:
            self._next()
