"""The tree against a plain dictionary of lists, and its shape after any history."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.server.prefix_tree import PrefixTree, common_prefix

TOKENS = st.lists(st.integers(0, 2), max_size=12)


def nodes(tree):
    stack = [tree._root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children.values()


def check(tree, known):
    """The tree knows exactly `known`, and no node is there for nothing."""
    assert len(tree) == len(known)
    ends = [(place, node) for node in nodes(tree) for place in node.places]
    assert dict(ends) == tree._ends
    assert len(ends) == len(known)
    for place, tokens in known.items():
        assert tree.tokens(place) == tokens
        assert tree.n_tokens(place) == len(tokens)
    for node in nodes(tree):
        for first, child in node.children.items():
            assert (child.parent, child.edge[0]) == (node, first)
            assert child.depth == node.depth + len(child.edge)
        if node is not tree._root:
            assert node.places or len(node.children) > 1


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.none() | TOKENS), max_size=25), TOKENS)
def test_any_history_leaves_what_a_dictionary_would_know(history, asked):
    tree, known = PrefixTree(), {}
    for place, tokens in history:
        if tokens is None:
            tree.drop(place)
            known.pop(place, None)
            continue
        tree.put(place, tokens)
        known[place] = tokens
        if not tokens:
            del known[place]
    check(tree, known)
    found = list(tree.matches(asked))
    assert dict(found) == {
        place: n for place, tokens in known.items() if (n := common_prefix(tokens, asked))
    }
    assert [n for _, n in found] == sorted((n for _, n in found), reverse=True)
    assert len(found) == len(dict(found))


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 700])
def test_long_texts_are_compared_to_the_token(n):
    a = [random.Random(1).randrange(9) for _ in range(700)]
    assert common_prefix(a, a[:n] + [9, 9]) == n
    tree = PrefixTree()
    tree.put("a", a)
    assert [m for _, m in tree.matches(a[:n] + [9, 9])] == ([n] if n else [])


def test_thousands_of_long_conversations_over_one_beginning_take_little():
    tree, system = PrefixTree(), list(range(2000))
    for i in range(2000):
        tree.put(i, [*system, 5000 + i, *range(i % 7)])
    assert sum(len(node.edge) for node in nodes(tree)) < 2000 + 2000 * 8
    place, n = next(tree.matches([*system, 5000 + 1234, 0, 1]))
    assert (place, n) == (1234, 2000 + 1 + min(1234 % 7, 2))
    for i in range(1999):
        tree.drop(i)
    assert len(list(nodes(tree))) == 2
