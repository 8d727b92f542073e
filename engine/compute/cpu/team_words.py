"""Words of a team's block: byte offsets, each on a cache line of its own."""

LINE = 128  # two lines of 64: neighbours are fetched in pairs

(
    GENERATION,  # of the barrier: changes when all have arrived
    ARRIVED,  # threads at the barrier
    SLEEPERS,  # threads asleep on GENERATION
    TAPE,  # address of the ops
    N_OPS,
    N_RUNNING,  # threads of this run
    QUIT,
    CANCEL,  # set from outside
    STOPPED,  # decided inside: this run ends here
    SPINS,  # pauses before a waiter sleeps
    WORKERS,  # from here one line per member
) = (i * LINE for i in range(11))

# Within a member's line.
COMMAND, ASLEEP, EXPECTED = 0, 8, 16

OP_BYTES = 24


def block_words(n_threads: int) -> int:
    """Return the int64 words of the block of a team."""
    return (WORKERS + n_threads * LINE) // 8
