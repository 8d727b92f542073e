"""What became of the file of a slot or of a conversation, as whoever asked for it hears it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SlotFile:
    """What a task with a file did: the slot (-1: none), its file ("": none), tokens, milliseconds.

    Nothing was known of a conversation if no file was written for it. `n_written` are the bytes
    that went to the disk: of a file that was added to, only what it lacked.
    """

    id_slot: int
    path: str
    n_tokens: int
    elapsed_ms: float
    n_written: int = 0
