"""What may come next: grammars, schemas and patterns, and the tokens that they allow."""

from engine.grammar.constraint import Constraint
from engine.grammar.lazy import LazyMatcher, Trigger
from engine.grammar.matcher import Matcher
from engine.grammar.reasoning import ReasoningBudget
from engine.grammar.tokens import TokenTable

__all__ = ["Constraint", "LazyMatcher", "Matcher", "ReasoningBudget", "TokenTable", "Trigger"]
