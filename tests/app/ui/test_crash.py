"""Killed while an answer comes, the program loses at most the last second of what was shown."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.make import window as make

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import math, sys
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from tests.make import window as make

application = QApplication([])
clients = make.Clients(reply="word " * 5000, tokens_per_second=200)
with make.window(Path(sys.argv[1]), clients) as shown:
    QTimer.singleShot(0, lambda: shown.pane.send("Count for a long time"))
    said = QTimer(interval=50)
    said.timeout.connect(lambda: print(len(shown.pane.transcript.text_of(
        shown.pane.transcript.messages[-1])) if shown.pane.transcript.messages else 0, flush=True))
    said.start()
    application.exec()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_kill_loses_at_most_the_last_second(tmp_path, qapp, qtbot):
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    shown: list[tuple[float, int]] = []
    started = time.monotonic()
    assert child.stdout is not None
    for line in child.stdout:
        shown.append((time.monotonic(), int(line)))
        if shown[-1][1] > 1500 or time.monotonic() - started > 60:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    killed = shown[-1][0]
    due = max(n for when, n in shown if when <= killed - 1.3 or n == 0)
    with make.window(tmp_path, make.Clients()) as window:
        question, answer = window.pane.transcript.messages
        assert question.text == "Count for a long time"
        assert answer.state == "interrupted"
        assert len(answer.text) >= due > 0
        view = window.pane.transcript._views[1]
        assert "interrupted" in view._notice()
        assert not window.pane.transcript.row.buttons["message.continue"].isHidden()
