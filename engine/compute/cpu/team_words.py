"""Words of a team's block: byte offsets. What one thread writes while others spin lies apart."""

LINE = 128  # two cache lines of 64: neighbours are fetched in pairs

# The barrier. The last thread to arrive owns the first line already when it looks for sleepers.
ARRIVED = 0  # threads at the barrier
SLEEPERS = 8  # threads asleep on GENERATION
GENERATION = LINE  # changes when all have arrived
STOPPED = LINE + 8  # decided by the last to arrive: this run ends here

# Set from outside.
CANCEL = 2 * LINE
TAPE = 3 * LINE  # address of the ops
N_OPS = 3 * LINE + 8
N_RUNNING = 3 * LINE + 16  # threads of this run
QUIT = 3 * LINE + 24
SPINS = 3 * LINE + 32  # pauses before a waiter sleeps

WORKERS = 4 * LINE  # from here one line per member

# Within a member's line.
COMMAND, ASLEEP, EXPECTED = 0, 8, 16

OP_BYTES = 24


def block_words(n_threads: int) -> int:
    """Return the int64 words of the block of a team."""
    return (WORKERS + n_threads * LINE) // 8
