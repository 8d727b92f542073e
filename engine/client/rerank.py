"""Reranking by judgement: a model is asked of each document whether it answers a query."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.params import Message
from engine.server.decision import Decision

INSTRUCTION = "Judge whether the document answers the query. Say only Yes or No."
ANSWERS = ("Yes", "No")


@dataclass(frozen=True)
class Ranked:
    """One document by its index in what was given; `score` 0 to 1, 1 answers the query."""

    index: int
    score: float


def judging(query: str, document: str) -> tuple[list[Message], tuple[str, ...]]:
    """Return the question to the model and the possible answers.

    The query comes before the document, so that all documents share it.
    """
    question = f"Query: {query}\n\nDocument: {document}\n\nDoes the document answer the query?"
    return [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": question},
    ], ANSWERS


def ranked(decisions: Sequence[Decision]) -> list[Ranked]:
    """Return the documents with the probability of a yes, the highest first."""
    scores = [Ranked(i, decision.probabilities[0]) for i, decision in enumerate(decisions)]
    return sorted(scores, key=lambda one: -one.score)
