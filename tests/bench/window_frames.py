"""Measures the window: opening a 10,000-message chat, and each frame while an answer streams in it.

    python -m tests.bench.window_frames [--messages N] [--tokens-per-second T] [--seconds S]
        [--panes N]

Prints milliseconds: to open the chat, for the work of a frame (drain, layout, paint), and the
stalls of the event loop as a 1 ms timer sees them. Nothing is asserted.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QElapsedTimer, QTimer
from PySide6.QtWidgets import QApplication

import engine
from tests.make import window as make

PART = """Paragraph {i} of a long answer, with **bold** words, `code` and *slanted* ones, long
enough to wrap over several lines of the page so that its layout costs what a real one costs.

- an item of a list
- another item, with a [link](https://example.org/{i})

```python
def number_{i}(values):
    return sum(value * {i} for value in values)  # of part {i}
```

"""


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--tokens-per-second", type=float, default=300)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--panes", type=int, default=1, choices=(1, 2, 3, 4))
    options = parser.parse_args()
    application = QApplication([])
    reply = "".join(PART.format(i=i) for i in range(3000))
    clients = make.Clients(reply=reply, tokens_per_second=options.tokens_per_second, n_ctx=1 << 20)
    if not hasattr(engine, "SAMPLING_SETTINGS"):
        engine.SAMPLING_SETTINGS = make.SAMPLERS
    with tempfile.TemporaryDirectory() as folder, make.window(Path(folder), clients) as window:
        window.resize(1440, 900)
        chat = fill(window.services.database, options.messages)
        open_ms = timed(lambda: (window.chats.open(chat), application.processEvents()))
        print(f"open {options.messages:,} messages: {open_ms:.0f} ms,", end=" ")
        print(f"{window.pane.transcript.n_built()} built")
        wait(application, lambda: window.services.engine.state == "ready", 20)
        for n in range(options.panes):
            if n:
                window.panes.split()
            window.pane.send("Go on, as long as you can.")
        report("start", *measure(application, window, options.seconds / 3))
        wait(application, lambda: False, options.seconds / 3)
        report("later", *measure(application, window, options.seconds / 3))
        views = [v for pane in window.panes.all() for v in pane.transcript._views.values()]
        n_blocks = sum(len(view.views) for view in views)
        n_characters = len(next(iter(window.services.replies.running.values())).text())
        print(f"answer: {n_characters:,} characters; {n_blocks} blocks on the page")


def fill(database: object, n_messages: int) -> int:
    """Store a conversation with that many messages and return its id."""
    chat = database.create_conversation(title="A long one")
    parent = None
    with database._write():
        for i in range(n_messages):
            role = "assistant" if i % 2 else "user"
            text = PART.format(i=i) if i % 2 else f"Question {i}?"
            parent = database.add_message(chat.id, parent, role, text).id
    return chat.id


def measure(application: QApplication, window: object, seconds: float) -> tuple[list, list]:
    """Return (milliseconds of each frame's drain, gaps between ticks of a 1 ms timer)."""
    replies, frames, gaps = window.services.replies, [], []
    drain = replies.drain

    def timed_drain() -> None:
        frames.append(timed(drain))

    replies._timer.timeout.disconnect()
    replies._timer.timeout.connect(timed_drain)
    clock, ticker = QElapsedTimer(), QTimer()
    clock.start()

    def tick() -> None:
        gaps.append(clock.nsecsElapsed() / 1e6)
        clock.restart()

    ticker.timeout.connect(tick)
    ticker.start(1)
    wait(application, lambda: False, seconds)
    ticker.stop()
    replies._timer.timeout.disconnect()
    replies._timer.timeout.connect(drain)
    return frames, gaps


def report(label: str, frames: list, gaps: list) -> None:
    """Print medians, 99th percentiles and maxima in milliseconds."""
    for name, values in (("drain", frames), ("loop gap", gaps)):
        ordered = sorted(values)
        p99 = ordered[int(len(ordered) * 0.99)]
        median = statistics.median(ordered)
        print(f"{label:6} {name:9} median {median:5.1f}  p99 {p99:5.1f}  max {ordered[-1]:5.1f} ms")


def timed(work: object) -> float:
    """Return the milliseconds that a call takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def wait(application: QApplication, until: object, seconds: float) -> None:
    """Run the event loop until something holds or the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        application.processEvents()
        time.sleep(0.0005)


if __name__ == "__main__":
    main()
