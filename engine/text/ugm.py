"""Unigram: a text is normalised, then cut along the path of tokens with the highest score."""

import struct

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError, RequestError
from engine.native.buffers import f64_bits
from engine.text.special import NORMAL, UNUSED, USER_DEFINED
from engine.text.spm import SPACE
from engine.text.strings import StringTable, bytes_address, run, string_array

_UNKNOWN_PENALTY = 10.0
_MAX_GROWTH = 64  # no character map writes more bytes than this for each byte it reads


class CharacterMap:
    """A precompiled normalisation: a double array of byte strings, and their replacements."""

    def __init__(self, blob: bytes) -> None:
        """Take the blob of the file, b"" for none; raises ModelFileError if it is cut."""
        n_bytes = struct.unpack_from("<I", blob)[0] if len(blob) >= 4 else 0
        if n_bytes % 4 or 4 + n_bytes > max(4, len(blob)):
            raise ModelFileError("The character map of this file is cut short; download it again.")
        self.nodes = np.frombuffer(blob[4 : 4 + n_bytes], "<u4").copy()
        self.replacements = blob[4 + n_bytes :]


class Unigrams:
    """The tokenizer of the family `t5`."""

    def __init__(
        self,
        tokens: StringTable,
        scores: NDArray[np.float32],
        attributes: NDArray[np.uint8],
        unk: int,
        character_map: CharacterMap,
        *,
        add_space_prefix: bool,
        merge_spaces: bool,
        escape_spaces: bool,
    ) -> None:
        self._tokens, self._unk, self._map = tokens, unk, character_map
        is_normal = (attributes & NORMAL) != 0
        is_kept = (attributes & USER_DEFINED) != 0
        usable = is_normal | is_kept | ((attributes & UNUSED) != 0)
        exact = scores.astype(np.float64)
        self._scores = np.where(usable, np.where(is_kept, 0.0, exact), np.nan)
        lowest = float(np.nan_to_num(scores[is_normal], nan=0.0).min(initial=0.0))
        self._unk_score = lowest - _UNKNOWN_PENALTY
        kept = [tokens[i] for i in np.flatnonzero(is_kept).tolist()]
        self._kept = StringTable(string_array(kept))
        self._space = SPACE.encode() if escape_spaces else b" "
        self._add_space_prefix, self._merge_spaces = add_space_prefix, merge_spaces

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self._best_path(self.normalize(text.encode())) for text in texts]

    def normalize(self, text: bytes) -> bytes:
        """Return the text as the vocabulary's makers saw it.

        Raises RequestError if it grows beyond all measure.
        """
        limit = _MAX_GROWTH * (len(text) + 1)
        out, state = np.empty(0, np.uint8), np.zeros(3, np.int64)
        for is_written in (False, True):
            run(
                "normalize",
                text=bytes_address(text),
                n_bytes=len(text),
                kept=self._kept.address,
                map=self._map.nodes.ctypes.data,
                n_nodes=len(self._map.nodes),
                replacements=bytes_address(self._map.replacements),
                n_replacements=len(self._map.replacements),
                space=bytes_address(self._space),
                n_space=len(self._space),
                add_prefix=self._add_space_prefix,
                merge_spaces=self._merge_spaces,
                limit=limit,
                out=out.ctypes.data if is_written else 0,
                result=state.ctypes.data,
            )
            if state[2] > limit:
                raise RequestError("The character map of this model inflates the text; cut it.")
            out = out if is_written else np.empty(int(state[2]), np.uint8)
        return out.tobytes()

    def _best_path(self, text: bytes) -> list[int]:
        n = len(text)
        prefix, best = np.empty(n + 1, np.int64), np.empty(n + 1, np.float64)
        token_to, begin_of = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
        ids, result = np.empty(n, np.int32), np.zeros(1, np.int64)
        run(
            "unigram",
            text=bytes_address(text),
            n_bytes=n,
            tokens=self._tokens.address,
            scores=self._scores.ctypes.data,
            unk=self._unk,
            unk_score=f64_bits(self._unk_score),
            prefix=prefix.ctypes.data,
            best=best.ctypes.data,
            token_to=token_to.ctypes.data,
            begin_of=begin_of.ctypes.data,
            ids=ids.ctypes.data,
            result=result.ctypes.data,
        )
        return ids[: result[0]][::-1].tolist()
