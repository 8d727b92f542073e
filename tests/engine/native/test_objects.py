"""Object files: built when anything they depend on changed, checked, never half written."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import env
from engine.errors import InternalError, MachineError
from engine.native import buffers, build, level, linker, objects, processor, sources, units

UNIT = "selftest"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A cache folder in which the unit is built."""
    folder = tmp_path_factory.mktemp("objects")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(env.CACHE_DIR.name, str(folder))
        objects.load([UNIT])
        yield objects.path_of(UNIT).read_bytes()


@pytest.fixture
def cache(built, tmp_path, monkeypatch):
    """A fresh cache folder that holds the built object."""
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    path = objects.path_of(UNIT)
    path.parent.mkdir(parents=True)
    path.write_bytes(built)
    processor._remember(processor._identity(), processor.read())
    return path


@pytest.fixture
def no_build(monkeypatch):
    """Record which units would be compiled, and compile none."""
    asked = []
    monkeypatch.setattr(build, "build", lambda names, progress: asked.append(names))
    return asked


def run_selftest(kernels):
    x = buffers.aligned(16, np.float32)
    x[:] = np.linspace(-4, 4, 16)
    w, v, out = (buffers.aligned(n, t) for n, t in ((64, "u1"), (64, "i1"), (16, "i4")))
    w[:], v[:] = np.arange(64, 128), np.arange(-32, 32)
    expected = np.exp(x)
    block = np.array([buffers.address(a) for a in (x, w, v, out)], np.int64)
    kernels.call(f"{UNIT}/exp_and_dot", block)
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    assert (out == (w.astype(int) * v).reshape(16, 4).sum(1)).all()


def test_sound_object_is_loaded_and_runs(cache, no_build):
    kernels = objects.load([UNIT])
    assert not no_build
    assert list(kernels) == [f"{UNIT}/exp_and_dot"]
    run_selftest(kernels)


@pytest.mark.skipif(not linker.can_link(), reason="LLVM links the objects of this system")
def test_warm_start_loads_no_compiler(cache):
    code = f"""
        import sys
        from pathlib import Path
        from engine.native import objects
        objects.load(["{UNIT}"])
        assert not {{"numba", "llvmlite"}} & set(sys.modules)
        maps = Path("/proc/self/maps")
        assert not maps.exists() or "llvm" not in maps.read_text().lower()
    """
    assert (cache.parents[1] / "processor.json").exists()
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, check=True)


def damages():
    def header(content, **changes):
        line, _, payload = content.partition(b"\n")
        return json.dumps(json.loads(line) | changes).encode() + b"\n" + payload

    def resealed(content, change):
        code = change(content.partition(b"\n")[2])
        line = header(content, sha256=hashlib.sha256(code).hexdigest(), n_bytes=len(code))
        return line.partition(b"\n")[0] + b"\n" + code

    yield "empty", lambda c: b""
    yield "cut in the header", lambda c: c[:40]
    yield "cut in the code", lambda c: c[:-1]
    yield "longer", lambda c: c + b"\0"
    yield "flipped bit", lambda c: c[:-100] + bytes([c[-100] ^ 1]) + c[-99:]
    yield "not an object", lambda c: os.urandom(5000)
    yield "header is a list", lambda c: b"[]\n" + c
    yield "no sections", lambda c: resealed(c, lambda code: code[:40] + bytes(8) + code[48:])
    yield "not ELF", lambda c: resealed(c, lambda code: b"MZ" + code[2:])
    yield "no code", lambda c: resealed(c, lambda code: b"")
    yield "lost kernel", lambda c: header(c, kernels=["exp_and_dot", "another"])
    yield "other unit", lambda c: header(c, unit="team")
    yield "other compiler", lambda c: header(c, toolchain="0" * 64)
    yield "other format", lambda c: header(c, format=99)
    yield "no sources", lambda c: header(c, sources={})
    yield "edited source", lambda c: header(c, sources={"engine/native/simd/dots.py": "0" * 64})
    yield "lost source", lambda c: header(c, sources={"engine/native/gone.py": "0" * 64})


@pytest.mark.parametrize("damage", [pytest.param(f, id=name) for name, f in damages()])
def test_unfit_object_is_built_again(cache, no_build, damage):
    cache.write_bytes(damage(cache.read_bytes()))
    with pytest.raises(InternalError):
        objects.load([UNIT])
    assert no_build == [[UNIT]] * objects.MAX_BUILDS


def test_damaged_object_is_replaced(cache):
    cache.write_bytes(b"{}\n")
    steps = []
    run_selftest(objects.load([UNIT], lambda stage, done: steps.append(done)))
    assert sorted(steps) == steps and set(steps) == {0.0, 1.0}
    assert objects.read(UNIT) is not None


def test_object_records_every_source_it_imported(cache):
    listed = objects.read(UNIT)[0].sources
    code = f"""
        import importlib, sys
        importlib.import_module("{units.find(UNIT).module}")
        importlib.import_module("engine.native.compiler")
        for name, module in sorted(sys.modules.items()):
            if name.startswith("engine.") and "__init__" not in module.__file__:
                print(module.__file__)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    imported = {Path(line).relative_to(ROOT).as_posix() for line in run.stdout.split()}
    without_code = {module.replace(".", "/") + ".py" for module in sources._WITHOUT_CODE}
    assert imported - set(listed) <= without_code
    assert not without_code & set(listed)
    assert "engine/native/simd/__init__.py" in listed
    assert all(listed[path] == sources.digest(path) for path in listed)


def test_what_is_there_loads_while_another_unit_is_compiled(cache, monkeypatch):
    objects.load([UNIT])
    begun, may_end = threading.Event(), threading.Event()

    def slow(names, progress):
        begun.set()
        assert may_end.wait(20)
        raise InternalError("never finished")

    monkeypatch.setattr(build, "build", slow)
    with ThreadPoolExecutor(2) as pool:
        compiled = pool.submit(objects.load, ["matmul.f32"])
        assert begun.wait(20)
        try:
            run_selftest(pool.submit(objects.load, [UNIT]).result(10))
        finally:
            may_end.set()
        assert isinstance(compiled.exception(), InternalError)


def test_units_that_every_model_wants_are_built_along_with_it(cache, no_build):
    model = ["team", "pointwise", "matmul.input", "matmul.f32"]
    with pytest.raises(InternalError):
        objects.load(model)
    assert set(no_build[0]) == {*model, "sampling", "text"}  # rare ones are built afterwards
    with pytest.raises(InternalError):
        objects.load(["matmul.f32"])
    assert no_build[-1] == ["matmul.f32"]


def test_import_in_a_branch_or_function_counts():
    text = """
    def f():
        if 1:
            from engine.native import level as x
        import engine.env
    """
    found = sources._imports(textwrap.dedent(text))
    assert set(found) == {"engine.native", "engine.native.level", "engine.env"}


def test_each_level_has_its_own_folder(monkeypatch):
    folders = set()
    for name in level.runnable():
        monkeypatch.setenv(env.CPU_LEVEL.name, name)
        folders.add(objects.folder())
    assert len(folders) == len(level.runnable())


def test_failed_write_leaves_the_old_object(cache, monkeypatch):
    before = cache.read_bytes()

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MachineError, match="No space left"):
        objects.write(UNIT, ["exp_and_dot"], b"other", {})
    assert cache.read_bytes() == before
    assert os.listdir(cache.parent) == [cache.name]


def test_two_processes_build_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    command = [sys.executable, "-m", "engine.native.build", UNIT]
    both = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert os.listdir(objects.folder()) == [f"{UNIT}.o"]
    run_selftest(objects.load([UNIT]))


def test_unit_that_does_not_compile_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    with pytest.raises(InternalError, match="did not compile.*no kernel unit"):
        build.build(["nonsense"])


def test_place_that_cannot_be_written_is_the_machines_fault(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path / "file"))
    with pytest.raises(MachineError, match=f"cannot be stored.*{env.CACHE_DIR.name}"):
        objects.load([UNIT])


def test_compiler_that_cannot_start_is_the_machines_fault(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    with pytest.raises(MachineError, match="cannot be started"):
        objects.load([UNIT])


def test_bundle_never_tries_to_compile(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(MachineError, match="no kernels for a processor"):
        objects.load([UNIT])


def test_progress_that_raises_stops_the_build(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))

    def stop(stage, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        objects.load([UNIT], stop)
    assert not objects.path_of(UNIT).exists()


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InternalError, match="selftest"):
        objects.load(["selftes"])
    with pytest.raises(InternalError, match="exp_and_dot"):
        objects.Kernels({"selftest/exp_and_dot": 1})["selftest/exp_dot"]
