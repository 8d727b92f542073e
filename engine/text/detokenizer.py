"""Bytes to text without cutting a character: what a stream may show so far."""

import codecs


class TextDecoder:
    """Decodes UTF-8 that arrives in pieces; bytes that are no UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, piece: bytes) -> str:
        """Return the whole characters that are complete with `piece`; the rest waits."""
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """Return what still waited, as U+FFFD, and start anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest

    @property
    def n_waiting(self) -> int:
        """Bytes of the unfinished character."""
        return len(self._decoder.getstate()[0])
