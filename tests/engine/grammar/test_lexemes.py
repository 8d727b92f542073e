"""Joined terminals accept what single code points do: random grammars against a plain reader."""

import random

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from engine.grammar.gbnf import read_gbnf
from engine.grammar.lexemes import to_lark
from engine.grammar.rules import Characters, Choice, Reference, Repeat
from tests.make.small_vocab import SmallVocab

TABLE = TokenTable.of(SmallVocab())
NAMES = ["root", "a", "b", "c"]
LETTERS = "xyz"


def random_item(rng, later, depth):
    kind = rng.random()
    if kind < 0.25:
        return '"' + "".join(rng.choices("xyz", k=rng.randint(1, 2))) + '"'
    if kind < 0.45:
        return rng.choice(["[xy]", "[y-z]", "[^x]", "[xyz]", "[x]"])
    if kind < 0.7 and later:
        return rng.choice(later)
    if kind < 0.8:  # recursion, but not from the left
        end = rng.choice(["", "[xy]", '"z"?'])
        return f'("{rng.choice(LETTERS)}" {rng.choice(NAMES)} {end})'
    return "(" + random_body(rng, later, depth + 1) + ")" if depth < 2 else '"y"'


def random_body(rng, later, depth=0):
    options = []
    for _ in range(rng.randint(1, 3)):
        items = [
            random_item(rng, later, depth) + rng.choice(["", "", "", "*", "+", "?", "{1,2}"])
            for _ in range(rng.randint(0 if depth else 1, 3))
        ]
        options.append(" ".join(items))
    return " | ".join(options)


def matches(rules, text):
    """Whether the rules match a text, by growing what each rule matches from each place."""
    known = {(name, start): set() for name in rules.bodies for start in range(len(text) + 1)}
    while True:
        grown = {key: ends(rules.bodies[key[0]], text, key[1], known) for key in known}
        if grown == known:
            return len(text) in known[("root", 0)]
        known = grown


def ends(node, text, start, known):
    """Return where matches of a node that begin at `start` may end."""
    if isinstance(node, Characters):
        fits = start < len(text) and any(a <= ord(text[start]) <= b for a, b in node.ranges)
        return {start + 1} if fits else set()
    if isinstance(node, Reference):
        return known[(node.name, start)]
    if isinstance(node, Choice):
        return set().union(*(ends(option, text, start, known) for option in node.options))
    if isinstance(node, Repeat):
        places, found = {start}, {start} if node.least == 0 else set()
        for n in range(1, (node.most or len(text) + 1 + node.least) + 1):
            places = set().union(*(ends(node.part, text, p, known) for p in places))
            found |= places if n >= node.least else set()
        return found
    places = {start}
    for part in node.parts:
        places = set().union(*(ends(part, text, p, known) for p in places))
    return places


def accepts(matcher, text):
    matcher = matcher.clone()
    for byte in text.encode():
        if not matcher.accepts(byte):
            return False
        matcher.accept(byte)
    return matcher.may_end


def compare(seed):
    """Return how often a random grammar was usable and had joined terminals."""
    rng = random.Random(seed)
    grammar = "\n".join(f"{n} ::= {random_body(rng, NAMES[i + 1 :])}" for i, n in enumerate(NAMES))
    try:
        rules = read_gbnf(grammar)
        joined = Constraint("gbnf", to_lark(rules)).begin(TABLE)
        single = Constraint("gbnf", to_lark(rules, whole=False)).begin(TABLE)
    except GrammarError as error:
        assert "left recursion" in str(error), f"{grammar}\n{error}"
        return False
    for _ in range(25):
        text = "".join(rng.choices("xyz", k=rng.randint(0, 7)))
        wanted = matches(rules, text)
        assert accepts(single, text) == wanted, f"single {text!r}\n{grammar}"
        assert accepts(joined, text) == wanted, f"joined {text!r}\n{grammar}\n{to_lark(rules)}"
    return True


@pytest.mark.parametrize("block", range(3))
def test_random_grammars(block):
    assert sum(compare(seed) for seed in range(block * 10, block * 10 + 10)) > 5
