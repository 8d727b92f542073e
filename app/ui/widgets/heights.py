"""The heights of all messages, with the sum up to any of them in logarithmic time."""

from collections.abc import Sequence


class HeightTree:
    """A Fenwick tree over whole pixel heights; every operation costs O(log n)."""

    def __init__(self, heights: Sequence[int] = ()) -> None:
        self._heights = list(heights)
        self._sums = [0, *heights]
        for i in range(1, len(self._sums)):
            parent = i + (i & -i)
            if parent < len(self._sums):
                self._sums[parent] += self._sums[i]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            i = index + 1
            while i < len(self._sums):
                self._sums[i] += change
                i += i & -i

    def append(self, height: int) -> None:
        """Add one message at the end."""
        self._heights.append(height)
        i = len(self._heights)
        below = i - (i & -i)
        self._sums.append(self.start(i - 1) - self.start(below) + height)

    def start(self, index: int) -> int:
        """Return the sum of the heights before `index`: where that message starts."""
        total, i = 0, index
        while i > 0:
            total += self._sums[i]
            i -= i & -i
        return total

    def total(self) -> int:
        """Return the sum of all heights."""
        return self.start(len(self._heights))

    def find(self, y: int) -> int:
        """Return the message that covers the pixel `y`; the last one below the end."""
        index, step = 0, 1 << len(self._heights).bit_length()
        while step:
            ahead = index + step
            if ahead < len(self._sums) and self._sums[ahead] <= y:
                index = ahead
                y -= self._sums[ahead]
            step >>= 1
        return min(index, max(0, len(self._heights) - 1))
