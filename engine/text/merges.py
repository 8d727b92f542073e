"""Runs the merge kernel: texts to token ids by byte-pair ranks or by SentencePiece scores."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError
from engine.text.signatures import WHOLE_NEVER, merge_scratch_bytes
from engine.text.strings import StringTable, bytes_address, run

MAX_TEXT_BYTES = (1 << 31) - 1  # offsets inside a segment are int32
_CAPACITY = 1024  # bytes of the longest segment in ordinary text


class Merger:
    """The merges of one vocabulary; read-only, so any number of threads may use it.

    `merges`: the ranked pairs, or None to join neighbours that are a token by `scores`, f32 [n],
    higher first. `byte_ids`: int32 [256], the token of a byte that is in no token, -1 = none.
    """

    def __init__(
        self,
        tokens: StringTable,
        byte_ids: NDArray[np.int32],
        merges: StringTable | None = None,
        scores: NDArray[np.float32] | None = None,
        whole: int = WHOLE_NEVER,
    ) -> None:
        self._tokens, self._merges = tokens, merges
        self._byte_ids = np.ascontiguousarray(byte_ids, np.int32)
        self._order = _order(np.zeros(0, np.float32) if scores is None else scores)
        self._joints = (merges or tokens).joints()
        self._words = dict(
            tokens=tokens.address,
            merges=0 if merges is None else merges.address,
            order=self._order.ctypes.data,
            joints=self._joints.ctypes.data,
            byte_ids=self._byte_ids.ctypes.data,
            whole=whole,
        )

    def merge(self, text: bytes, offsets: NDArray[np.int64]) -> list[list[int]]:
        """Return the ids of each text.

        Text i is text[offsets[i] : offsets[i + 1]]. Takes at most 44 bytes of memory for each byte
        of the longest stretch that cannot be cut. Raises RequestError above 2 GiB.
        """
        if len(text) > MAX_TEXT_BYTES:
            raise RequestError("The text is longer than 2 GiB; send it in parts.")
        offsets = np.ascontiguousarray(offsets, np.int64)
        ids = np.empty(len(text), np.int32)
        out_offsets = np.empty(len(offsets), np.int64)
        result = np.zeros(1, np.int64)
        capacity = _CAPACITY
        while True:
            scratch = np.empty(merge_scratch_bytes(capacity), np.uint8)
            run(
                "merge",
                **self._words,
                text=bytes_address(text),
                offsets=offsets.ctypes.data,
                n_texts=len(offsets) - 1,
                scratch=scratch.ctypes.data,
                capacity=capacity,
                ids=ids.ctypes.data,
                out_offsets=out_offsets.ctypes.data,
                result=result.ctypes.data,
            )
            if result[0] == 0:
                break
            capacity = int(result[0])
        return split_ids(ids, out_offsets)


def _order(scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return int32 keys that ascend as the scores descend; a score that is no number is last."""
    numbers = np.where(np.isnan(scores), np.float32(-np.inf), scores.astype(np.float32) + 0.0)
    bits = np.ascontiguousarray(numbers, np.float32).view(np.int32)
    return ~np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)


def split_ids(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> list[list[int]]:
    """Return the ids of each text: text i has ids[offsets[i] : offsets[i + 1]]."""
    all_ids = ids[: offsets[-1]].tolist()
    return [all_ids[a:b] for a, b in pairwise(offsets.tolist())]
