"""How each kind of relocation writes an address into code or tables, on x86-64 and AArch64.

Kinds are those of the two processor supplements of the ELF standard; only what the kernels' objects
contain is here, and `tests` hold each one against numbers worked out by hand. S is the address of a
symbol, A the addend, P the address of the place that is written.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from engine.native.elf import DamagedObject

STUB_BYTES = 16
Write = Callable[[memoryview, int, int, int], None]  # image, offset in it, S + A, P


@dataclass(frozen=True)
class Machine:
    """A kind of processor: its relocations, which of them call, and a jump to any address."""

    name: str
    writers: dict[int, Write]
    calls: frozenset[int]
    stub: struct.Struct  # of the address
    stub_code: bytes

    def make_stub(self, address: int) -> bytes:
        """Return STUB_BYTES of code that go on at an address too far away for a call."""
        return self.stub_code + self.stub.pack(address)

    def apply(self, kind: int, image: memoryview, offset: int, value: int, place: int) -> None:
        """Write S + A = `value` at `offset` of an image, whose address there is `place`.

        Raises DamagedObject for an unknown kind, a value out of range, or a place at the edge.
        """
        write = self.writers.get(kind)
        if write is None:
            raise DamagedObject(f"The object asks for a relocation of kind {kind}.")
        try:
            write(image, offset, value, place)
        except struct.error:
            raise DamagedObject(f"A relocation of kind {kind} does not fit its place.") from None


def _absolute(form: str) -> Write:
    packed = struct.Struct(form)

    def write(image: memoryview, offset: int, value: int, place: int) -> None:
        packed.pack_into(image, offset, value)

    return write


def _relative(form: str) -> Write:
    packed = struct.Struct(form)

    def write(image: memoryview, offset: int, value: int, place: int) -> None:
        packed.pack_into(image, offset, value - place)

    return write


X86_64 = Machine(
    "x86-64",
    {
        1: _absolute("<Q"),  # 64: S + A
        2: _relative("<i"),  # PC32: S + A - P
        4: _relative("<i"),  # PLT32: the same, of a function
        24: _relative("<q"),  # PC64
    },
    frozenset({4}),
    struct.Struct("<Q"),
    bytes.fromhex("ff2502000000 0f0b"),  # jmp [rip+2]; ud2; the address
)

_PAGE = 0xFFF
_WORD = struct.Struct("<I")


def _patch(image: memoryview, offset: int, value: int, mask: int) -> None:
    """Put `value` into the bits `mask` of an instruction, whose other bits stay."""
    (word,) = _WORD.unpack_from(image, offset)
    _WORD.pack_into(image, offset, word & ~mask | value & mask)


def _branch(image: memoryview, offset: int, value: int, place: int) -> None:
    """B and BL: the distance in words, 26 bits with sign."""
    distance = value - place
    if distance % 4 or not -(1 << 27) <= distance < 1 << 27:
        raise DamagedObject("A relocation of a branch goes too far.")
    _patch(image, offset, distance >> 2, 0x03FFFFFF)


def _page_of(image: memoryview, offset: int, value: int, place: int) -> None:
    """ADRP: the distance in pages of 4 KiB, 21 bits with sign, the low two of them apart."""
    pages = (value >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise DamagedObject("A relocation of a page goes too far.")
    _patch(image, offset, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5, 0x60FFFFE0)


def _in_page(n_bytes: int) -> Write:
    """ADD, and loads and stores of `n_bytes`: the place in the page, in their units."""

    def write(image: memoryview, offset: int, value: int, place: int) -> None:
        if value % n_bytes:
            raise DamagedObject("A relocation of a load is not aligned.")
        _patch(image, offset, (value & _PAGE) // n_bytes << 10, 0x003FFC00)

    return write


AARCH64 = Machine(
    "AArch64",
    {
        257: _absolute("<Q"),  # ABS64
        260: _relative("<q"),  # PREL64
        261: _relative("<i"),  # PREL32
        275: _page_of,  # ADR_PREL_PG_HI21
        277: _in_page(1),  # ADD_ABS_LO12_NC
        278: _in_page(1),  # LDST8_ABS_LO12_NC
        284: _in_page(2),  # LDST16
        285: _in_page(4),  # LDST32
        286: _in_page(8),  # LDST64
        299: _in_page(16),  # LDST128
        282: _branch,  # JUMP26
        283: _branch,  # CALL26
    },
    frozenset({282, 283}),
    struct.Struct("<Q"),
    bytes.fromhex("50000058 00021fd6"),  # ldr x16, the address; br x16
)

MACHINES = {62: X86_64, 183: AARCH64}  # e_machine
