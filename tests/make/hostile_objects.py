"""Damaged object files, every field of each: `python -m … OBJECT` links them all in this process.

Prints how many were refused and how many were linked; a crash is seen by whoever started it.
"""

import random
import struct
import sys
from pathlib import Path

from engine.native import elf, external, linker

LIES = (0, 1, 2, 3, 0x7F, 0x80, 0xFF)
FAR = (1 << 16) - 1, 1 << 31, (1 << 32) - 1, 1 << 33, (1 << 63) - 1, 1 << 63, (1 << 64) - 1
BASE = 0x7F00_0000_0000


def structure(content):
    """Return [start, end) of everything in an object that is no code and no constant."""
    table, n = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    spans = [(0, 64), (table, table + 64 * n)]
    for i in range(n):
        kind, _, _, offset, n_bytes = struct.unpack_from("<IQQQQ", content, table + 64 * i + 4)
        if kind in (2, 3, 4):
            spans.append((offset, offset + n_bytes))
    return spans


def damaged(content, seed=0):
    """Yield objects with one byte, one word, or a few random bytes replaced, and cut ones."""
    for start, end in structure(content):
        for at in range(start, end):
            for lie in LIES:
                if content[at] != lie:
                    yield content[:at] + bytes([lie]) + content[at + 1 :]
        for at in range(start, end - 7, 4):
            for lie in FAR:
                yield content[:at] + struct.pack("<Q", lie) + content[at + 8 :]
    for length in range(0, len(content), 7):
        yield content[:length]
    rng = random.Random(seed)
    spans = structure(content)
    for _ in range(2000):
        changed = bytearray(content)
        for _ in range(rng.randint(1, 6)):
            changed[rng.randrange(*rng.choice(spans))] = rng.randrange(256)
        yield bytes(changed)


def try_image(content):
    """Link at an address where nothing is; return whether it was accepted."""
    try:
        parsed = elf.parse(content)
        layout = linker.lay_out(parsed, 4096)
        linker.make_image(parsed, layout, BASE, external.address)
    except elf.DamagedObject:
        return False
    return True


def try_link(content):
    """Link for real, and run nothing; return whether it was accepted."""
    try:
        linker.link(content)
    except elf.DamagedObject:
        return False
    return True


def main(path):
    """Try everything on paper, and every hundredth for real."""
    content = Path(path).read_bytes()
    content = content[content.index(b"\x7fELF") :]
    assert try_image(content) and try_link(content)
    accepted = [try_image(one) for one in damaged(content)]
    linked = [try_link(one) for i, one in enumerate(damaged(content)) if i % 100 == 0]
    print(len(accepted) - sum(accepted), sum(accepted), sum(linked))


if __name__ == "__main__":
    main(sys.argv[1])
