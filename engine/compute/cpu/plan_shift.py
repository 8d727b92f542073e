"""The tape that turns stored K in place after positions have moved."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.arena import Touch
from engine.compute.cpu.tape import Addresses, KernelCall, Tape
from engine.compute.cpu.workspace import Workspace
from engine.compute.graph import Rotation
from engine.native.buffers import address, aligned


def shift_tape(
    workspace: Workspace,
    addresses: Addresses,
    rotations: Sequence[tuple[int, Rotation]],
    pages: NDArray[np.int32],
    deltas: NDArray[np.int32],
) -> Tape:
    """Return the tape that turns K of some pages in the given (layer, rotation) pairs.

    `pages` int32[n] and `deltas` int32[n, 32], how many positions each cell has moved, must live
    until the tape has run.
    """
    calls = []
    for layer, rotation in rotations:
        place = workspace.pages[layer]
        words = {
            "n_pages": len(pages),
            "pages": address(pages),
            "deltas": address(deltas),
            "n_head_kv": place.n_head_kv,
            "head_size_k": place.head_size_k,
            "inv_freq": workspace.frequencies(rotation),
            "n_rot": rotation.n_rot,
            "neox": rotation.layout == "neox",
            "k_base": place.k_base,
            "k_page_bytes": place.k_page_bytes,
            "scratch": workspace.scratch,
            "scratch_stride": workspace.scratch_stride,
        }
        touch = Touch((), (("cells", layer),))
        calls.append(KernelCall(f"attention.{place.kv_types}/shift", words, touch))
    return Tape(calls, addresses, aligned(0, np.uint8))
