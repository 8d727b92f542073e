"""PrefixTree: which places know how a text begins, as a radix tree over token ids."""

from array import array
from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

PIECE = 256  # tokens compared at once, in C
Place = TypeVar("Place", bound=Hashable)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many first tokens two sequences share."""
    n_max, n = min(len(a), len(b)), 0
    while n < n_max and list(a[n : n + PIECE]) == list(b[n : n + PIECE]):
        n += PIECE
    n = min(n, n_max)
    while n < n_max and a[n] == b[n]:
        n += 1
    return n


class _Node(Generic[Place]):
    """The tokens of `edge` after those of the parent, `depth` in all; `places` end here."""

    __slots__ = ("children", "depth", "edge", "parent", "places")

    def __init__(self, edge: "array[int]", parent: "_Node[Place] | None") -> None:
        self.edge = edge
        self.parent = parent
        self.depth: int = len(edge) + (parent.depth if parent else 0)
        self.children: dict[int, _Node[Place]] = {}
        self.places: dict[Place, None] = {}


class PrefixTree(Generic[Place]):
    """Places (anything hashable), each with the tokens that it knows. Not for two threads at once.

    A place without tokens is not in the tree.
    """

    def __init__(self) -> None:
        self._root: _Node[Place] = _Node(array("i"), None)
        self._ends: dict[Place, _Node[Place]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, place: Place) -> bool:
        return place in self._ends

    def places(self) -> list[Place]:
        """Return every place, in no order."""
        return list(self._ends)

    def n_tokens(self, place: Place) -> int:
        """Return how many tokens a place knows, 0 if it is not in the tree."""
        return self._ends[place].depth if place in self._ends else 0

    def tokens(self, place: Place) -> list[int]:
        """Return the tokens that a place knows."""
        edges, node = [], self._ends.get(place)
        while node is not None:
            edges.append(node.edge)
            node = node.parent
        return [token for edge in reversed(edges) for token in edge]

    def put(self, place: Place, tokens: Sequence[int]) -> None:
        """Note that a place knows these tokens now, and no longer what it knew before."""
        ids, before = array("i", tokens), self._ends.get(place)
        if before is not None and before.depth == len(ids) and self._holds(before, ids):
            return
        self.drop(place)
        if not len(ids):
            return
        node, n = self._descend(ids)
        if n < node.depth:
            node = self._split(node, n)
        if n < len(ids):
            node = self._add_child(node, ids[n:])
        node.places[place] = None
        self._ends[place] = node

    def drop(self, place: Place) -> None:
        """Forget a place; one that is not in the tree is none to forget."""
        node = self._ends.pop(place, None)
        if node is not None:
            del node.places[place]
            self._prune(node)

    def matches(self, tokens: Sequence[int]) -> Iterator[tuple[Place, int]]:
        """Yield every place that shares a beginning, the longest first, with its number of tokens.

        The tree may not change while this runs.
        """
        node, n = self._descend(array("i", tokens))
        behind: _Node[Place] | None = None
        while n:
            for place in self._below(node, behind):
                yield place, n
            assert node.parent is not None
            behind, node = node, node.parent
            n = node.depth

    # ------------------------------------------------------------- nodes

    def _holds(self, node: _Node[Place], ids: "array[int]") -> bool:
        found, n = self._descend(ids)
        return found is node and n == node.depth

    def _descend(self, ids: "array[int]") -> tuple[_Node[Place], int]:
        """Return the deepest node whose edge the ids enter, and how many of them match."""
        node, n = self._root, 0
        while n < len(ids):
            child = node.children.get(ids[n])
            if child is None:
                break
            n_shared = common_prefix(child.edge, ids[n : n + len(child.edge)])
            node, n = child, n + n_shared
            if n < child.depth:
                break
        return node, n

    def _add_child(self, parent: _Node[Place], edge: "array[int]") -> _Node[Place]:
        child = _Node(edge, parent)
        parent.children[edge[0]] = child
        return child

    def _split(self, node: _Node[Place], depth: int) -> _Node[Place]:
        """Cut a node's edge so that a node of that depth stands above it; return the new one."""
        parent = node.parent
        assert parent is not None
        n = depth - parent.depth
        upper = self._add_child(parent, node.edge[:n])
        node.edge, node.parent = node.edge[n:], upper
        upper.children[node.edge[0]] = node
        return upper

    def _prune(self, node: _Node[Place]) -> None:
        """Take away a node that no place needs, or join it with its only child."""
        while node.parent is not None and not node.places and not node.children:
            parent = node.parent
            del parent.children[node.edge[0]]
            node = parent
        if node.parent is not None and not node.places and len(node.children) == 1:
            (child,) = node.children.values()
            child.edge = node.edge + child.edge
            child.parent = node.parent
            node.parent.children[child.edge[0]] = child

    def _below(self, top: _Node[Place], left_out: _Node[Place] | None) -> Iterator[Place]:
        """Yield the places at and below a node, but for one of its children."""
        stack = [top]
        while stack:
            node = stack.pop()
            yield from node.places
            stack += [child for child in node.children.values() if child is not left_out]
