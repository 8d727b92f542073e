"""The real program, started as a person starts it: offscreen, on the starter model."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from PySide6.QtGui import QImage

from tests.make.models import smollm2

ROOT = Path(__file__).resolve().parents[2]


def start(folder, *arguments):
    """Start the program with everything in `folder`; returns the process."""
    command = [sys.executable, "-m", "app", "--offscreen", "--data-dir", folder, *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env=environment, stderr=subprocess.PIPE
    )


def answer_the_likeliest(folder):
    """Let every answer be the likeliest one: by chance a small model may talk for minutes."""
    preset = {"name": "Sure", "sampling": {"temperature": 0}}
    for name, content in (("presets/sure.json", preset), ("settings.json", {"preset": "sure"})):
        path = folder / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def messages(folder):
    """The stored messages, oldest first: role, state, text."""
    found = next(Path(folder).rglob("conversations.sqlite"), None)
    if found is None:
        return []
    database = sqlite3.connect(f"file:{found}?mode=ro", uri=True, timeout=5)
    try:
        return database.execute("SELECT role, state, text FROM messages ORDER BY id").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        database.close()


def answer_after(folder, process, n_characters, timeout=180):
    """Wait until the running answer on the disk is longer than `n_characters`; return it."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read().decode()
        for role, state, text in messages(folder):
            if role == "assistant" and state == "running" and len(text) > n_characters:
                return text
        time.sleep(0.05)
    raise AssertionError("no answer reached the disk in time")


def test_a_prompt_is_answered_stored_and_shown(tmp_path):
    picture = tmp_path / "window.png"
    answer_the_likeliest(tmp_path / "home")
    process = start(
        *(tmp_path / "home", "--model", smollm2(), "--screenshot", picture),
        *("--prompt", "Name three colours."),
    )
    _, complaints = process.communicate(timeout=240)
    assert process.returncode == 0, complaints.decode()
    (_, _, question), (role, state, answer) = messages(tmp_path / "home")
    assert question == "Name three colours."
    assert (role, state) == ("assistant", "finished")
    assert len(answer.split()) >= 3
    image = QImage(str(picture))
    colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, 600, 3)}
    assert image.width() >= 800
    assert len(colours) > 50


def records(folder):
    """What was written down of each stored answer, oldest first."""
    database = sqlite3.connect(next(Path(folder).rglob("conversations.sqlite")))
    with closing(database):
        rows = database.execute("SELECT record FROM messages WHERE role = 'assistant' ORDER BY id")
        return [json.loads(record) for (record,) in rows]


def test_after_a_restart_only_the_new_question_is_read(tmp_path):
    home = tmp_path / "home"
    answer_the_likeliest(home)
    numbers = "Here is a list of numbers: " + " ".join(map(str, range(1, 250)))
    for question in (f"{numbers}. What is the capital of France?", "Thank you. And of Italy?"):
        picture = tmp_path / "window.png"
        process = start(home, "--model", smollm2(), "--prompt", question, "--screenshot", picture)
        _, complaints = process.communicate(timeout=240)
        assert process.returncode == 0, complaints.decode()
    (file,) = (home / "stored" / "snapshots").glob("chat-*.safetensors")
    first, second = (record["timings"] for record in records(home))
    assert len(messages(home)) == 4  # one conversation
    assert first["n_read"] > 300 and first["n_cached"] < 10
    known = first["n_prompt"] + first["n_generated"]
    assert second["n_cached"] >= known - 8 and second["n_read"] < 40
    assert second["n_cached"] + second["n_read"] == second["n_prompt"]
    assert records(home)[-1]["n_reread"] == 0
    assert file.stat().st_size > known * 20_000


def test_a_killed_answer_is_kept_as_far_as_it_got(tmp_path):
    home = tmp_path / "home"
    answer_the_likeliest(home)
    ask = "Write a very long story about a lighthouse, at least two thousand words."
    process = start(home, "--model", smollm2(), "--prompt", ask, "--quit-after", "300")
    shown = answer_after(home, process, 200)
    process.kill()
    process.communicate()

    again = start(home, "--quit-after", "2")
    _, complaints = again.communicate(timeout=120)
    assert again.returncode == 0, complaints.decode()
    (_, _, question), (role, state, kept) = messages(home)
    assert question == ask
    assert (role, state) == ("assistant", "interrupted")
    assert kept.startswith(shown)
