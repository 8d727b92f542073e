"""The whole program on the starter model: start, ask, answer, picture, and start again."""

import os
import subprocess
import sys
from pathlib import Path

from PySide6.QtGui import QImage

from app.chats.database import ChatDatabase
from app.paths import find_paths
from tests.make import models

ROOT = Path(__file__).resolve().parents[3]


def test_the_real_window_answers_on_the_starter_model(tmp_path):
    model = models.smollm2()
    picture = tmp_path / "window.png"
    command = [sys.executable, "-m", "app", "--offscreen", "--data-dir", str(tmp_path / "home")]
    command += ["--model", str(model), "--prompt", "Say hello in one short sentence."]
    command += ["--screenshot", str(picture), "--quit-after", "240"]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=280, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    image = QImage(str(picture))
    assert (image.width(), image.height()) == (1440, 900)
    with ChatDatabase(find_paths(tmp_path / "home").chats) as chats:
        chat = chats.conversations()[0]
        question, answer = chats.branch(chat.id)
    assert question.text == "Say hello in one short sentence."
    assert answer.state == "finished" and answer.text.strip()
    timings = answer.record["timings"]
    assert timings["n_generated"] > 1 and timings["n_prompt"] > 5
    assert answer.record["stop_type"] == "eos"
