"""Reads a relocatable ELF object: sections, symbols and relocations, each held against its bytes.

Nothing in the file is believed: every offset, size, index and name is checked before it is used,
and what this reader does not know is refused. Only what ends up in memory is kept.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from engine.errors import InternalError

MAX_BYTES = 8 << 20
MAX_SECTIONS = 1024
MAX_NAME_BYTES = 4096
MAX_ALIGNMENT = 4096

_HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_RELOCATABLE = 1  # e_type
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _REL = 1, 2, 3, 4, 8, 9  # sh_type
_NOTE, _UNWIND = 7, 0x70000001
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400  # sh_flags
_UNDEFINED, _ABSOLUTE, _FIRST_RESERVED = 0, 0xFFF1, 0xFF00  # st_shndx
_SECTION_NAME, _FILE_NAME = 3, 4  # st_info, low half
_PLAIN_SYMBOLS = (0, 1, 2, _SECTION_NAME)  # of no type, an object, a function


class DamagedObject(InternalError):
    """An object file is not what a compiler of ours writes: it must be compiled again."""


@dataclass(frozen=True)
class Section:
    """A section that is loaded: its bytes, zeros up to `n_bytes`, and what may be done with it."""

    name: str
    content: memoryview
    n_bytes: int
    alignment: int
    is_code: bool
    is_writable: bool


@dataclass(frozen=True)
class Symbol:
    """A name with a place: a section's index and an offset in it, or neither if it is elsewhere."""

    name: str
    section: int | None
    value: int
    is_absolute: bool = False
    is_exported: bool = False

    @property
    def is_elsewhere(self) -> bool:
        """Return whether another library has to say where it is."""
        return self.section is None and not self.is_absolute


@dataclass(frozen=True)
class Relocation:
    """A place in a section that needs a symbol's address plus `addend`, in the form `kind`."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Object:
    """What is loaded of an object file: sections by their index, symbols and relocations."""

    machine: int
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


@dataclass(frozen=True)
class _Entry:
    """One row of the table of sections."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    n_bytes: int
    link: int
    applies_to: int
    alignment: int
    entry_bytes: int

    @property
    def is_loaded(self) -> bool:
        return bool(self.flags & _ALLOC) and self.type != _UNWIND


def parse(content: bytes) -> Object:
    """Return what an object file holds; raises DamagedObject with the reason it is refused."""
    view = memoryview(content).toreadonly()
    machine, entries, names = _read_header(view)
    sections = {
        i: _read_section(view, entry, _name(names, entry.name))
        for i, entry in enumerate(entries)
        if entry.is_loaded
    }
    tables = [i for i, entry in enumerate(entries) if entry.type == _SYMTAB]
    if len(tables) != 1:
        raise DamagedObject(f"The object has {len(tables)} tables of symbols instead of one.")
    symbols = list(_read_symbols(view, entries, tables[0]))
    relocations: list[Relocation] = []
    for entry in entries:
        if entry.type in (_REL, _RELA) and entry.applies_to in sections:
            if entry.type == _REL or entry.link != tables[0]:
                raise DamagedObject("The object's relocations are of an unknown form.")
            target = sections[entry.applies_to]
            relocations += _read_relocations(view, entry, target, len(symbols))
    return Object(machine, sections, symbols, relocations)


def _read_header(view: memoryview) -> tuple[int, list[_Entry], memoryview]:
    """Return the machine, the rows of the table of sections, and the names of sections."""
    if not _HEADER.size <= len(view) <= MAX_BYTES:
        raise DamagedObject(f"The object has {len(view):,} bytes.")
    fields = _HEADER.unpack_from(view)
    magic, width, order, version, kind, machine = fields[:6]
    offset, entry_bytes, n_sections, names = fields[9], *fields[14:]
    if (magic, width, order, version, kind) != (b"\x7fELF", 2, 1, 1, _RELOCATABLE):
        raise DamagedObject("The object is not a relocatable 64-bit little-endian ELF file.")
    if entry_bytes != _SECTION.size or not 0 < n_sections <= MAX_SECTIONS:
        raise DamagedObject(f"The object claims {n_sections} sections of {entry_bytes} bytes.")
    table = _part(view, offset, n_sections * _SECTION.size, "table of sections")
    entries = [_Entry(*row) for row in _SECTION.iter_unpack(table)]
    return machine, entries, _strings(view, entries, names)


def _read_section(view: memoryview, entry: _Entry, name: str) -> Section:
    if entry.flags & _THREAD_LOCAL or entry.type not in (_PROGBITS, _NOBITS, _NOTE):
        raise DamagedObject(f"The object's section “{name[:60]}” is of an unknown kind.")
    alignment = max(1, entry.alignment)
    if alignment > MAX_ALIGNMENT or alignment & (alignment - 1):
        raise DamagedObject(f"The object's section “{name[:60]}” wants to lie at {alignment}.")
    is_code, is_writable = bool(entry.flags & _EXECUTE), bool(entry.flags & _WRITE)
    if is_code and is_writable:
        raise DamagedObject(f"The object's section “{name[:60]}” is code that can be overwritten.")
    n_stored = 0 if entry.type == _NOBITS else entry.n_bytes
    stored = _part(view, entry.offset, n_stored, "section") if n_stored else view[:0]
    if name.startswith(".data.rel.ro"):
        is_writable = False  # only until its addresses are filled in
    return Section(name, stored, entry.n_bytes, alignment, is_code, is_writable)


def _read_symbols(view: memoryview, entries: list[_Entry], i_table: int) -> Iterator[Symbol]:
    entry = entries[i_table]
    strings = _strings(view, entries, entry.link)
    for row in _SYMBOL.iter_unpack(_rows(view, entry, _SYMBOL, "table of symbols")):
        i_name, kind, _, section, value, _ = row
        binding, kind = kind >> 4, kind & 15
        name = _name(strings, i_name)
        if kind == _FILE_NAME:
            yield Symbol(name, None, 0, is_absolute=True)
        elif kind not in _PLAIN_SYMBOLS or binding > 2:
            raise DamagedObject(f"The object's symbol “{name[:60]}” is of an unknown kind.")
        elif section in (_UNDEFINED, _ABSOLUTE):
            yield Symbol(name, None, value, is_absolute=section == _ABSOLUTE)
        elif section >= min(len(entries), _FIRST_RESERVED) or value > entries[section].n_bytes:
            raise DamagedObject(f"The object's symbol “{name[:60]}” lies outside of it.")
        else:
            yield Symbol(name, section, value, is_exported=binding > 0)


def _read_relocations(
    view: memoryview, entry: _Entry, target: Section, n_symbols: int
) -> Iterator[Relocation]:
    for row in _RELOCATION.iter_unpack(_rows(view, entry, _RELOCATION, "relocations")):
        offset, what, addend = row
        kind, symbol = what & 0xFFFFFFFF, what >> 32
        if offset >= len(target.content) or symbol >= n_symbols:
            raise DamagedObject("The object's relocations point outside of it.")
        yield Relocation(entry.applies_to, offset, kind, symbol, addend)


def _rows(view: memoryview, entry: _Entry, row: struct.Struct, what: str) -> memoryview:
    if entry.entry_bytes != row.size or entry.n_bytes % row.size:
        raise DamagedObject(f"The object's {what} has rows of another size.")
    return _part(view, entry.offset, entry.n_bytes, what)


def _part(view: memoryview, offset: int, n_bytes: int, what: str) -> memoryview:
    if offset > len(view) or n_bytes > len(view) - offset:
        raise DamagedObject(f"The object is cut short: its {what} reaches beyond its end.")
    return view[offset : offset + n_bytes]


def _strings(view: memoryview, entries: list[_Entry], i: int) -> memoryview:
    if i >= len(entries) or entries[i].type != _STRTAB:
        raise DamagedObject("The object has no table of names where it says so.")
    return _part(view, entries[i].offset, entries[i].n_bytes, "table of names")


def _name(strings: memoryview, start: int) -> str:
    text = bytes(strings[start : start + MAX_NAME_BYTES])
    end = text.find(b"\0")
    if end < 0:
        raise DamagedObject("The object has a name without an end.")
    try:
        return text[:end].decode("ascii")
    except UnicodeDecodeError:
        raise DamagedObject("The object has a name that no compiler gives.") from None
