"""The linker: the same results as LLVM's own loader, sealed pages, and no trust in an object."""

import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import MachineError
from engine.native import elf, executable_memory, external, linker, llvm_linker, objects
from engine.native.elf import DamagedObject
from engine.runtime import Model
from tests.make.architecture import read_recipe, write_model
from tests.make.products import Product

ROOT = Path(__file__).resolve().parents[3]
BASE = 0x7F00_0000_0000

pytestmark = pytest.mark.skipif(not linker.can_link(), reason="LLVM links the objects here")


def code_of(unit):
    """Return the object of a unit, compiled if need be."""
    objects.load([unit])
    return objects.read(unit)[1]


@pytest.fixture(scope="module")
def selftest():
    return code_of("selftest")


def by_llvm(units):
    """Return the kernels of units as LLVM's own loader makes them."""
    addresses = {}
    for unit in units:
        header, content = objects.read(unit)
        names = [objects.symbol(unit, kernel) for kernel in header.kernels]
        found = llvm_linker.link(content, names)
        addresses |= {f"{unit}/{k}": found[objects.symbol(unit, k)] for k in header.kernels}
    return objects.Kernels(addresses)


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "f16"])
def test_products_are_those_of_llvms_loader(name):
    units = [f"matmul.{name}", "matmul.input"]
    both = objects.load(units), by_llvm(units)
    for kind, n_rows in (("gemv", 1), ("multi", 3), ("gemm", 5)):
        found = []
        for kernels in both:
            product = Product(name, 256, 37, n_rows, "rms_norm", bias=True)
            product.run(kernels, kind)
            found.append(product.y.copy())
        assert np.array_equal(*found), kind


@pytest.mark.parametrize("name", ["llama-dense", "gemma3-dense"])
def test_a_model_computes_what_it_does_with_llvms_loader(name, tmp_path, monkeypatch):
    path = write_model(read_recipe(name), tmp_path / "model.gguf")

    def logits():
        with Model.load(path) as model, model.context(n_ctx=256, n_threads=2) as context:
            return np.concatenate([context.decode(range(60)), context.decode([3])])

    ours = logits()
    monkeypatch.setattr(objects, "_LINKED", {})
    monkeypatch.setattr(objects, "_symbols_of", llvm_linker.link)
    theirs = logits()
    assert objects._LINKED
    assert np.array_equal(ours, theirs)


def test_code_is_not_writable_and_constants_are_not_code():
    content = code_of("matmul.q4_0")
    addresses = linker.link(content)
    parsed = elf.parse(content)
    layout = linker.lay_out(parsed, mmap.PAGESIZE)
    assert layout.n_constant and layout.n_bytes < len(content) + 3 * mmap.PAGESIZE + 4096
    symbol = next(one for one in parsed.symbols if one.is_exported)
    start = addresses[symbol.name] - symbol.value - layout.offsets[symbol.section]
    rights = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, right, *_ = line.split()
        first, end = (int(part, 16) for part in where.split("-"))
        rights |= {at: right for at in (start, start + layout.n_code) if first <= at < end}
    assert rights == {start: "r-xp", start + layout.n_code: "r--p"}


def test_sections_lie_where_vectors_want_them():
    parsed = elf.parse(code_of("matmul.q4_0"))
    layout = linker.lay_out(parsed, 4096)
    spans = sorted((layout.offsets[i], section.n_bytes) for i, section in parsed.sections.items())
    assert all(start % linker.ALIGNMENT == 0 for start, _ in spans)
    assert all(a + n <= b for (a, n), (b, _) in zip(spans, spans[1:], strict=False))
    assert layout.n_code % 4096 == 0 and layout.n_constant % 4096 == 0


def test_far_functions_are_reached_through_a_jump():
    parsed = elf.parse(code_of("team"))
    layout = linker.lay_out(parsed, 4096)
    far = {name: 0x1234_5678_0000 + i for i, name in enumerate(layout.stubs)}
    assert far
    image = linker.make_image(parsed, layout, BASE, far.get)
    for name, offset in layout.stubs.items():
        assert offset < layout.n_code
        assert int.from_bytes(image[offset + 8 : offset + 16], "little") == far[name]


def test_a_function_that_is_missing_is_named():
    parsed = elf.parse(code_of("team"))
    layout = linker.lay_out(parsed, 4096)
    with pytest.raises(DamagedObject, match=next(iter(layout.stubs))):
        linker.make_image(parsed, layout, BASE, lambda name: None)


def test_an_object_for_another_processor_is_refused(selftest):
    other = 183 if elf.parse(selftest).machine == 62 else 62
    for machine in (other, 0, 243):
        content = selftest[:18] + machine.to_bytes(2, "little") + selftest[20:]
        with pytest.raises(DamagedObject, match="processor"):
            linker.link(content)


def test_every_damaged_field_is_refused_or_harmless(selftest, tmp_path):
    path = tmp_path / "selftest.o"
    path.write_bytes(selftest)
    command = [sys.executable, "-m", "tests.make.hostile_objects", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    n_refused, n_accepted, n_linked = map(int, run.stdout.split())
    assert n_refused > 3000 and n_accepted and n_linked


def test_a_claim_of_much_memory_is_refused(selftest):
    parsed = elf.parse(selftest)
    content = memoryview(b"")
    huge = elf.Section(".bss", content, linker.MAX_BYTES + 1, 16, False, True)
    with pytest.raises(DamagedObject, match="claims"):
        linker.lay_out(elf.Object(62, {1: huge}, parsed.symbols, []), 4096)
    with pytest.raises(DamagedObject, match="bytes"):
        elf.parse(bytes(elf.MAX_BYTES + 1))


def test_a_system_that_forbids_it_is_the_machines_fault(selftest, monkeypatch):
    released = []
    monkeypatch.setattr(executable_memory, "_c", lambda name: lambda *a: 0 if name == "mmap" else 1)
    monkeypatch.setattr(linker.ctypes, "memmove", lambda *a: None)
    monkeypatch.setattr(executable_memory, "reserve", lambda n: BASE)
    monkeypatch.setattr(executable_memory, "release", lambda *a: released.append(a))
    with pytest.raises(MachineError, match="executable"):
        linker.link(selftest)
    assert released == [(BASE, linker.lay_out(elf.parse(selftest), mmap.PAGESIZE).n_bytes)]


def test_no_memory_is_the_machines_fault():
    with pytest.raises(MachineError, match="no memory"):
        executable_memory.reserve(1 << 62)


def test_c_functions_are_found_by_name():
    assert external.address("memset")
    assert external.address("no_such_function_anywhere") is None
    assert external.address("") is None
    assert external.function("no_such_function_anywhere", None) is None
