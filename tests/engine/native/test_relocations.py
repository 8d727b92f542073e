"""Each relocation writes what the standards of the two processors say, by hand-made numbers."""

import struct

import pytest

from engine.native.elf import DamagedObject
from engine.native.relocations import AARCH64, STUB_BYTES, X86_64

PLACE = 0x10_0000_1008


def written(machine, kind, value, n_bytes, before=0, place=PLACE):
    """Return the integer at a place after a relocation, and see that nothing else changed."""
    image = bytearray(b"\xa5" * 24)
    image[8 : 8 + n_bytes] = before.to_bytes(n_bytes, "little")
    machine.apply(kind, memoryview(image), 8, value, place)
    assert image[:8] == b"\xa5" * 8 and image[8 + n_bytes :] == b"\xa5" * (16 - n_bytes)
    return int.from_bytes(image[8 : 8 + n_bytes], "little")


@pytest.mark.parametrize(
    ("machine", "kind", "value", "n_bytes", "expected"),
    [
        (X86_64, 1, 0xFFFF_8000_1234_5678, 8, 0xFFFF_8000_1234_5678),
        (X86_64, 2, PLACE - 4 + 0x20, 4, 0x1C),
        (X86_64, 4, PLACE - 4, 4, 0xFFFF_FFFC),
        (X86_64, 2, PLACE + 0x7FFF_FFFF, 4, 0x7FFF_FFFF),
        (X86_64, 24, PLACE - 0x1_0000_0000_0000, 8, 0xFFFF_0000_0000_0000),
        (AARCH64, 257, 0x1234_5678_9ABC_DEF0, 8, 0x1234_5678_9ABC_DEF0),
        (AARCH64, 260, PLACE - 1, 8, 0xFFFF_FFFF_FFFF_FFFF),
        (AARCH64, 261, PLACE - 0x8000_0000, 4, 0x8000_0000),
    ],
)
def test_numbers_in_tables(machine, kind, value, n_bytes, expected):
    assert written(machine, kind, value, n_bytes) == expected


# Instructions as an assembler for AArch64 writes them, without and with the address.
@pytest.mark.parametrize(
    ("kind", "value", "before", "expected"),
    [
        (283, PLACE + 8, 0x94000000, 0x94000002),  # bl .+8
        (283, PLACE - 4, 0x94000000, 0x97FFFFFF),  # bl .-4
        (282, PLACE + 0x7FFFFFC, 0x14000000, 0x15FFFFFF),  # b .+0x7fffffc
        (275, PLACE, 0x90000000, 0x90000000),  # adrp x0, .
        (275, PLACE + 0x1000, 0x90000003, 0xB0000003),  # adrp x3, .+0x1000
        (275, PLACE + 0x4000, 0x90000000, 0x90000020),  # adrp x0, .+0x4000
        (275, PLACE - 0x1000, 0x90000000, 0xF0FFFFE0),  # adrp x0, .-0x1000
        (277, 0x5FFF, 0x91000000, 0x913FFC00),  # add x0, x0, #0xfff
        (278, 0x1003, 0x39400000, 0x39400C00),  # ldrb w0, [x0, #3]
        (284, 0x1006, 0x79400000, 0x79400C00),  # ldrh w0, [x0, #6]
        (285, 0x100C, 0xBD400000, 0xBD400C00),  # ldr s0, [x0, #12]
        (286, 0x1018, 0xFD400000, 0xFD400C00),  # ldr d0, [x0, #24]
        (299, 0x1030, 0x3DC00000, 0x3DC00C00),  # ldr q0, [x0, #48]
        (299, 0x1FF0, 0x3DC00021, 0x3DC3FC21),  # ldr q1, [x1, #0xff0]
    ],
)
def test_instructions_of_aarch64(kind, value, before, expected):
    assert written(AARCH64, kind, value, 4, before) == expected


@pytest.mark.parametrize(
    ("machine", "kind", "value"),
    [
        (X86_64, 0, 0),
        (X86_64, 9, 0),
        (X86_64, 1, -1),
        (X86_64, 1, 1 << 64),
        (X86_64, 2, PLACE + 0x8000_0000),
        (X86_64, 4, PLACE - 0x8000_0001),
        (AARCH64, 1, 0),
        (AARCH64, 261, PLACE + 0x8000_0000),
        (AARCH64, 283, PLACE + (1 << 27)),
        (AARCH64, 283, PLACE - (1 << 27) - 4),
        (AARCH64, 283, PLACE + 2),
        (AARCH64, 275, PLACE + (1 << 32)),
        (AARCH64, 275, PLACE - (1 << 33)),
        (AARCH64, 299, 0x1008),
        (AARCH64, 284, 1),
    ],
)
def test_what_does_not_fit_is_refused(machine, kind, value):
    with pytest.raises(DamagedObject):
        written(machine, kind, value, 8)


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_a_place_at_the_edge_is_refused(machine):
    for kind in machine.writers:
        for offset in (5, 8, 1 << 40):
            with pytest.raises(DamagedObject):
                machine.apply(kind, memoryview(bytearray(8)), offset, PLACE, PLACE)


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_a_stub_ends_with_its_address(machine):
    stub = machine.make_stub(0x0102_0304_0506_0708)
    assert len(stub) == STUB_BYTES
    assert struct.unpack("<Q", stub[8:]) == (0x0102_0304_0506_0708,)
