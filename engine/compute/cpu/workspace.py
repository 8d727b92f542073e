"""Workspace: the memory that all tapes of one context share, and where weights and pages lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import (
    MULTI_ROWS,
    attention_scratch_bytes,
    matmul_scratch_bytes,
    partials_bytes,
    shift_scratch_bytes,
)
from engine.compute.cpu.ubatch_blocks import UbatchBlocks
from engine.compute.graph import Graph, Rotation, Weight
from engine.errors import InternalError
from engine.native.buffers import address, aligned


class StoredTensor(Protocol):
    """What is asked of a tensor of the model file."""

    type: Any  # its `name` is a quantization, such as Q4_K
    row_bytes: int
    n_bytes: int

    @property
    def address(self) -> int:
        """Address of its first byte."""

    def array(self) -> NDArray[np.uint8]:
        """Return its bytes."""


@dataclass(frozen=True)
class LayerPages:
    """Where the K and V of one layer lie, and the shape of its heads."""

    i_pool: int
    n_head_kv: int
    head_size_k: int
    head_size_v: int
    window: int
    kv_types: str  # such as "f16.f16"
    k_base: int
    k_page_bytes: int
    v_base: int
    v_page_bytes: int

    def words(self) -> dict[str, int]:
        """Return the words of the pages that attention kernels share."""
        return {
            "n_head_kv": self.n_head_kv,
            "head_size_k": self.head_size_k,
            "head_size_v": self.head_size_v,
            "k_base": self.k_base,
            "k_page_bytes": self.k_page_bytes,
            "v_base": self.v_base,
            "v_page_bytes": self.v_page_bytes,
        }


@dataclass(frozen=True)
class Table:
    """A weight as kernels see it."""

    type: str  # in small letters, as in the units' names
    address: int
    row_bytes: int
    part_bytes: int


class Workspace:
    """Scratch for each thread, the changing words, and addresses of everything that stays."""

    def __init__(
        self,
        graph: Graph,
        tensors: Mapping[str, StoredTensor],
        pages: Sequence[LayerPages],
        page_positions: Sequence[int],
        n_ubatch: int,
        n_threads: int,
    ) -> None:
        self.n_ubatch = n_ubatch
        self.pages = pages
        self.blocks = UbatchBlocks(n_ubatch, page_positions)
        self._tensors = tensors
        self._kept: dict[Any, NDArray] = {}
        self.scratch_stride = _scratch_bytes(graph, pages, n_ubatch)
        self._scratch = aligned((n_threads, self.scratch_stride), np.uint8)
        self._partials = aligned(_partials_bytes(graph, pages, n_threads), np.uint8)
        self.arena = aligned(0, np.uint8)

    @property
    def scratch(self) -> int:
        """Address of the first thread's scratch."""
        return address(self._scratch)

    @property
    def partials(self) -> int:
        """Address of the partial results of split attention."""
        return address(self._partials)

    def arena_of(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return the memory for the buffers of a tape; a bigger one only if it must be."""
        if n_bytes > len(self.arena):
            self.arena = aligned(n_bytes, np.uint8)
        return self.arena

    def table(self, weight: Weight) -> Table:
        """Return where a matrix, or a stack of them, lies."""
        tensor = self._tensors[weight.name]
        start = tensor.address + weight.first_row * tensor.row_bytes
        part_bytes = tensor.n_bytes // weight.n_parts
        return Table(tensor.type.name.lower(), start, tensor.row_bytes, part_bytes)

    def vector(self, weight: Weight | None) -> int:
        """Return the address of a weight that is one row or one column of f32; 0 for None."""
        if weight is None:
            return 0
        tensor = self._tensors[weight.name]
        kind = tensor.type.name
        if kind == "F32":
            return tensor.address + 4 * weight.first_row
        if weight.name not in self._kept:
            stored = tensor.array().reshape(-1)
            if kind == "F16":
                self._kept[weight.name] = _copied(stored.view(np.float16).astype(np.float32))
            elif kind == "BF16":
                wide = stored.view(np.uint16).astype(np.uint32) << 16
                self._kept[weight.name] = _copied(wide.view(np.float32))
            else:
                raise InternalError(f"The vector “{weight.name}” is stored as {kind}.")
        return address(self._kept[weight.name]) + 4 * weight.first_row

    def frequencies(self, rotation: Rotation) -> int:
        """Return the address of the f64 frequencies of a rotation."""
        if rotation not in self._kept:
            self._kept[rotation] = _copied(np.array(rotation.frequencies, np.float64))
        return address(self._kept[rotation])


def _copied(array: NDArray) -> NDArray:
    place = aligned(array.shape, array.dtype)
    place[...] = array
    return place


def _scratch_bytes(graph: Graph, pages: Sequence[LayerPages], n_ubatch: int) -> int:
    n_ins = {w.n_columns for node in graph.nodes for w in node.weights if w is not None}
    sizes = [matmul_scratch_bytes(max(n_ins), n_ubatch)]
    for one in pages:
        sizes.append(attention_scratch_bytes(one.head_size_k, one.head_size_v))
        sizes.append(shift_scratch_bytes(one.head_size_k))
    return -(-max(sizes) // 4096) * 4096


def _partials_bytes(graph: Graph, pages: Sequence[LayerPages], n_threads: int) -> int:
    most = 64
    for node in graph.nodes:
        if node.op == "attend":
            one = pages[node.numbers["layer"]]
            shape = node.numbers["n_heads"], one.n_head_kv, one.head_size_v
            most = max(most, partials_bytes(MULTI_ROWS, *shape, n_threads))
    return most
