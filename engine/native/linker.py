"""Makes an object file runnable: lays its sections out in memory, links, and seals the pages.

Order in memory: code with jumps to far functions, constants, what is written to; each from a page
of its own. A compiler's loader does the same and brings 47 MB of library with it.
"""

import ctypes
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

from engine.native import elf, executable_memory, external
from engine.native.elf import DamagedObject, Object, Section
from engine.native.relocations import MACHINES, STUB_BYTES, Machine

MAX_BYTES = 64 << 20
ALIGNMENT = 64
_ELF_MACHINES = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}
_SYSTEMS = ("linux", "win32")  # elsewhere pages of code need more than a change of protection

Find = Callable[[str], int | None]


@dataclass(frozen=True)
class Layout:
    """Where the sections of an object lie, as offsets: code, then constants, then the rest."""

    offsets: dict[int, int]  # of each section
    stubs: dict[str, int]  # of the jump to each function that is elsewhere
    n_code: int
    n_constant: int
    n_bytes: int


def can_link() -> bool:
    """Return whether objects for this machine can be linked here."""
    return sys.platform in _SYSTEMS and platform.machine().lower() in _ELF_MACHINES


def link(content: bytes) -> dict[str, int]:
    """Make the code of an object file executable; return the address of each exported symbol.

    Raises DamagedObject if the file is not one of this machine's or needs a symbol that this
    process lacks, MachineError if there is no memory for code.
    """
    parsed = elf.parse(content)
    if parsed.machine != _ELF_MACHINES.get(platform.machine().lower()):
        raise DamagedObject("The object is for another kind of processor.")
    layout = lay_out(parsed, executable_memory.page_bytes())
    base = executable_memory.reserve(layout.n_bytes)
    try:
        image = make_image(parsed, layout, base, external.address)
        ctypes.memmove(base, bytes(image), len(image))
        executable_memory.seal(base, layout.n_code, layout.n_constant)
    except BaseException:
        executable_memory.release(base, layout.n_bytes)
        raise
    return {
        symbol.name: base + layout.offsets[symbol.section] + symbol.value
        for symbol in parsed.symbols
        if symbol.is_exported and symbol.section in layout.offsets
    }


def lay_out(parsed: Object, page_bytes: int) -> Layout:
    """Give every section its place, and a jump to every function that is elsewhere."""
    offsets: dict[int, int] = {}
    end = 0
    groups = []
    for belongs in (_is_code, _is_constant, _is_written):
        for i, section in parsed.sections.items():
            if belongs(section):
                offsets[i] = end = _up(end, max(ALIGNMENT, section.alignment))
                end += section.n_bytes
        if belongs is _is_code:
            stubs, end = _place_stubs(parsed, _up(end, ALIGNMENT))
        groups.append(end := _up(end, page_bytes))
        if end > MAX_BYTES:
            raise DamagedObject(f"The object claims {end:,} bytes.")
    if not end:
        raise DamagedObject("The object is empty.")
    return Layout(offsets, stubs, groups[0], groups[1] - groups[0], end)


def make_image(parsed: Object, layout: Layout, base: int, find: Find) -> bytearray:
    """Return the bytes that are to lie at the address `base`, with every relocation applied.

    `find` gives the address of a function that is elsewhere.
    """
    machine = MACHINES[parsed.machine]
    image = bytearray(layout.n_bytes)
    for i, section in parsed.sections.items():
        start = layout.offsets[i]
        image[start : start + len(section.content)] = section.content
    for name, offset in layout.stubs.items():
        image[offset : offset + STUB_BYTES] = machine.make_stub(_far(name, find))
    for one in parsed.relocations:
        start = layout.offsets[one.section]
        end = start + len(parsed.sections[one.section].content)
        target = _target(parsed, layout, one.symbol, base, find, one.kind in machine.calls)
        place = base + start + one.offset
        with memoryview(image)[start:end] as part:
            machine.apply(one.kind, part, one.offset, target + one.addend, place)
    return image


def unknown_symbols(content: bytes, find: Find = external.address) -> list[str]:
    """Return the names that an object needs and this process does not have."""
    return [one.name for one in elf.parse(content).symbols
            if one.name and one.is_elsewhere and find(one.name) is None]  # fmt: skip


def _target(
    parsed: Object, layout: Layout, i_symbol: int, base: int, find: Find, is_call: bool
) -> int:
    """Return the address that a relocation is about: S."""
    symbol = parsed.symbols[i_symbol]
    if symbol.is_absolute:
        return symbol.value
    if symbol.section is None:
        return base + layout.stubs[symbol.name] if is_call else _far(symbol.name, find)
    if symbol.section not in layout.offsets:
        raise DamagedObject("A relocation of the object is about a section that is not loaded.")
    return base + layout.offsets[symbol.section] + symbol.value


def _place_stubs(parsed: Object, start: int) -> tuple[dict[str, int], int]:
    """Return the offset of a jump for each function that is called and elsewhere, and the end."""
    calls = _machine(parsed).calls
    called = {one.symbol for one in parsed.relocations if one.kind in calls}
    far = {parsed.symbols[i].name for i in called if parsed.symbols[i].is_elsewhere}
    stubs = {name: start + i * STUB_BYTES for i, name in enumerate(sorted(far))}
    return stubs, start + len(stubs) * STUB_BYTES


def _machine(parsed: Object) -> Machine:
    machine = MACHINES.get(parsed.machine)
    if machine is None:
        raise DamagedObject(f"The object is for a processor of the unknown kind {parsed.machine}.")
    return machine


def _far(name: str, find: Find) -> int:
    address = find(name)
    if not address:
        raise DamagedObject(f"The object needs the C function “{name[:60]}”: it is missing here.")
    return address


def _is_code(section: Section) -> bool:
    return section.is_code


def _is_constant(section: Section) -> bool:
    return not section.is_code and not section.is_writable


def _is_written(section: Section) -> bool:
    return section.is_writable


def _up(n: int, step: int) -> int:
    return -(-n // step) * step
