"""Measures the real program: start, model ready, and the window's stalls while all cores compute.

    python -m tests.bench.start [--model FILE] [--seconds S]

Prints seconds from process start to a window that answers, from there to a model that answers,
and the gaps that a 1 ms timer of the event loop sees while an answer streams. Nothing is asserted.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ASK = "Write a very long story about a lighthouse, with a list, a table and some code in it."


def main() -> None:
    """Start the program's own parts in its own order, and print what they cost."""
    from tests.make.models import folder

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        measure(Path(home), options.model or folder() / "smollm2.gguf", options.seconds)


def measure(home: Path, model: Path, seconds: float) -> None:
    """Open the window in `home`, load `model`, ask, and watch the event loop for `seconds`."""
    from app.main import make_application, make_services, open_window
    from app.paths import find_paths

    application = make_application()
    paths = find_paths(home)
    paths.make()
    services = make_services(paths)
    window = open_window(application, services)
    application.processEvents()
    usable = age()
    window.begin()
    window.load_model(model)
    wait(application, lambda: services.engine.state in ("ready", "failed"), 120)
    ready = age()
    print(f"window usable {usable:.2f} s, model {services.engine.state}", end=" ")
    print(f"{ready - usable:.2f} s later", flush=True)
    window.pane.send(ASK)
    wait(application, lambda: bool(services.replies.running), 10)
    gaps = watch(application, services, seconds)
    p99 = statistics.quantiles(gaps, n=100)[98]
    print(f"event loop while streaming: p99 {p99:.1f} ms, longest {max(gaps):.1f} ms,", end=" ")
    print(f"{len(gaps)} turns")
    services.replies.stop_all()
    window.close()
    services.close()


def age() -> float:
    """Seconds since this process was started (Linux)."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def watch(application: object, services: object, seconds: float) -> list[float]:
    """Gaps in milliseconds between turns of a 1 ms timer while answers run."""
    from PySide6.QtCore import QTimer

    gaps, last = [], [time.perf_counter()]

    def tick() -> None:
        now = time.perf_counter()
        gaps.append((now - last[0]) * 1000)
        last[0] = now

    timer = QTimer(interval=1)
    timer.timeout.connect(tick)
    timer.start()
    wait(application, lambda: not services.replies.running, seconds)
    timer.stop()
    return gaps[1:]


def wait(application: object, is_over: object, seconds: float) -> None:
    """Run the event loop until `is_over()` or the time is up."""
    from PySide6.QtCore import QEventLoop

    end = time.perf_counter() + seconds
    while time.perf_counter() < end and not is_over():
        application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 20)


if __name__ == "__main__":
    main()
