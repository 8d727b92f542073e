"""Measures the real program: start, model ready, and the window's stalls while all cores compute.

    python -m tests.bench.start [--model FILE] [--seconds S] [--panes N]

Prints one JSON line: seconds from process start to a window that answers, from there to a model
that answers, and the gaps in milliseconds that a 1 ms timer of the event loop sees while an answer
streams in each pane.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ASK = "Write a very long story about a lighthouse, with a list, a table and some code in it."


def main() -> None:
    """Start the program's own parts in its own order, and print what they cost."""
    from tests.make.models import folder

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--panes", type=int, default=1, choices=(1, 2, 3, 4))
    options = parser.parse_args()
    model = options.model or folder() / "smollm2.gguf"
    with tempfile.TemporaryDirectory() as home:
        print(json.dumps(measure(Path(home), model, options.seconds, options.panes)))


def measure(home: Path, model: Path, seconds: float, n_panes: int) -> dict[str, float]:
    """Open the window in `home`, load `model`, ask in each pane, and watch the event loop."""
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
    if services.engine.state != "ready":
        raise RuntimeError("the model could not be loaded")
    window.resize(1440, 900)
    for n in range(n_panes):
        if n:
            window.panes.split()
        window.pane.send(ASK)
    wait(application, lambda: len(services.replies.running) == n_panes, 10)
    gaps, n_running = watch(application, services, seconds)
    services.replies.stop_all()
    window.close()
    services.close()
    p99 = statistics.quantiles(gaps, n=100)[98]
    found = {"usable_s": usable, "ready_s": ready - usable, "p99_ms": p99}
    return found | {"longest_ms": max(gaps), "n_turns": len(gaps), "n_running": n_running}


def age() -> float:
    """Seconds since this process was started (Linux)."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def watch(application: Any, services: Any, seconds: float) -> tuple[list[float], int]:
    """Return the gaps in milliseconds between turns of a 1 ms timer while every answer runs, and
    how many answers ran."""
    from PySide6.QtCore import QTimer

    n_running = len(services.replies.running)
    gaps, last = [], [time.perf_counter()]

    def tick() -> None:
        now = time.perf_counter()
        gaps.append((now - last[0]) * 1000)
        last[0] = now

    timer = QTimer(interval=1)
    timer.timeout.connect(tick)
    timer.start()
    wait(application, lambda: len(services.replies.running) < n_running, seconds)
    timer.stop()
    return gaps[1:], n_running


def wait(application: Any, is_over: Any, seconds: float) -> None:
    """Run the event loop until `is_over()` or the time is up."""
    from PySide6.QtCore import QEventLoop

    end = time.perf_counter() + seconds
    while time.perf_counter() < end and not is_over():
        application.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 20)


if __name__ == "__main__":
    main()
