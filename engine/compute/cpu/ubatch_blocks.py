"""UbatchBlocks: the words that change with every ubatch, where the kernels of a tape find them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import (
    CELLS,
    N_OUTPUTS,
    N_RUNS,
    N_TOKENS,
    OUTPUT_ROWS,
    PAGE_POSITIONS,
    POSITIONS,
    RUNS,
    TOKENS,
)
from engine.compute.graph import OUTPUTS
from engine.compute.graph import TOKENS as TOKEN_ROWS
from engine.native.buffers import address, aligned

_BLOCK_WORDS = 8  # one cache line each


class UbatchBlocks:
    """For "tokens" and "outputs" rows alike: a batch block, and a pool block per page pool.

    The outputs' blocks describe the wanted rows as a batch of their own, so that any kernel runs
    on them unchanged.
    """

    def __init__(self, n_ubatch: int, page_positions: Sequence[int]) -> None:
        n_pools = len(page_positions)
        self._batch = {rows: aligned(_BLOCK_WORDS, np.int64) for rows in (TOKEN_ROWS, OUTPUTS)}
        self._pools = {
            rows: aligned((max(1, n_pools), _BLOCK_WORDS), np.int64) for rows in self._batch
        }
        self.tokens = aligned(n_ubatch, np.int32)
        self.output_rows = aligned(n_ubatch, np.int32)
        self.positions = {rows: aligned(n_ubatch, np.int32) for rows in self._batch}
        self.cells = aligned((max(1, n_pools), n_ubatch), np.int32)
        self._runs: dict[tuple[str, int], NDArray[np.int64]] = {}
        for rows, block in self._batch.items():
            block[TOKENS] = address(self.tokens)
            block[OUTPUT_ROWS] = address(self.output_rows)
            block[POSITIONS] = address(self.positions[rows])
            for i, positions in enumerate(page_positions):
                self._pools[rows][i, PAGE_POSITIONS] = positions
                self._pools[rows][i, CELLS] = address(self.cells[i])

    def batch(self, rows: str) -> int:
        """Return the address of the batch block of "tokens" or "outputs" rows."""
        return address(self._batch[rows])

    def pool(self, rows: str, i_pool: int) -> int:
        """Return the address of a pool's block for "tokens" or "outputs" rows."""
        return address(self._pools[rows]) + 8 * _BLOCK_WORDS * i_pool

    def count(self, rows: str) -> int:
        """Return the address of the number of rows, which kernels take as `n_rows`."""
        return self.batch(rows) + 8 * N_TOKENS

    def set_rows(
        self, tokens: NDArray[np.int32], positions: NDArray[np.int32], outputs: NDArray[np.int32]
    ) -> None:
        """Describe a ubatch: its token ids, their positions, and the rows that are wanted."""
        n, n_outputs = len(tokens), len(outputs)
        self.tokens[:n] = tokens
        self.positions[TOKEN_ROWS][:n] = positions
        self.output_rows[:n_outputs] = outputs
        self.positions[OUTPUTS][:n_outputs] = positions[outputs]
        for rows, count in ((TOKEN_ROWS, n), (OUTPUTS, n_outputs)):
            self._batch[rows][N_TOKENS] = count
            self._batch[rows][N_OUTPUTS] = n_outputs

    def set_pool(
        self,
        i_pool: int,
        cells: NDArray[np.int32],
        runs: NDArray[np.int64],
        output_runs: NDArray[np.int64],
    ) -> None:
        """Say where the rows of a pool go and which pages each run of rows reads."""
        self.cells[i_pool, : len(cells)] = cells
        for rows, table in ((TOKEN_ROWS, runs), (OUTPUTS, output_runs)):
            self._runs[rows, i_pool] = table
            self._pools[rows][i_pool, N_RUNS] = len(table)
            self._pools[rows][i_pool, RUNS] = address(table)
