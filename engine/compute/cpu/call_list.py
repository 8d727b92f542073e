"""CallList: the kernel calls of a plan as they are written, and the words that many share."""

from typing import Any

from engine.compute.cpu.arena import Buffer, Touch
from engine.compute.cpu.places import Places
from engine.compute.cpu.tape import Counter, KernelCall
from engine.compute.cpu.workspace import Workspace
from engine.compute.graph import Rotation, Value


class CallList:
    """Calls in order, and what earlier ones left behind for later ones to use.

    `tables` are cos and sin per rotation, `tiles` prepared inputs of products with many rows,
    `prepared` names the input whose rows lie prepared in the scratch.
    """

    def __init__(self, workspace: Workspace, places: Places) -> None:
        self.workspace = workspace
        self.blocks = workspace.blocks
        self.places = places
        self.calls: list[KernelCall] = []
        self.tables: dict[Rotation, Buffer] = {}
        self.tiles: dict[tuple, Buffer] = {}
        self.prepared: tuple | None = None

    def add(
        self, kernel: str, reads: tuple[Any, ...], writes: tuple[Any, ...], words: dict[str, Any]
    ) -> None:
        """Append a call; `reads` and `writes` are buffers, and marks for what lies elsewhere."""
        self.calls.append(KernelCall(kernel, words, Touch(reads, writes)))

    def share_words(self) -> dict[str, Any]:
        """Return the words of a call whose threads share its work out: scratch and a counter."""
        return {
            "scratch": self.workspace.scratch,
            "scratch_stride": self.workspace.scratch_stride,
            "counter": Counter(),
        }

    def row_words(self, value: Value, name: str = "x", stride: str = "ldx") -> dict[str, Any]:
        """Return the words of a value: its buffer and the bytes between its rows."""
        return {name: self.places.of(value), stride: self.places.stride(value)}

    def n_rows(self, value: Value) -> int:
        """Return the address of the number of a value's rows."""
        return self.blocks.count(value.rows)
