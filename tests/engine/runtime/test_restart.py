"""Conversations that were saved go on in another process with exactly the same greedy text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.memory import KV_TYPES
from tests.make.architecture import read_recipe, write_model

ROOT = Path(__file__).resolve().parents[3]
MODELS = ("llama-dense", "gemma3-dense")

# Called twice: to read, drop a middle, save all along and go on; and to restore and go on.
_CONTINUE = """
import json, sys
import numpy as np
from engine.runtime import Model

folder, verb, kinds = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
tokens = np.random.default_rng(8).integers(0, 128, 220)
answers = {}
for name in ("llama-dense", "gemma3-dense"):
    with Model.load(f"{folder}/{name}.gguf") as model:
        for kind in kinds:
            sizes = {"n_ctx": 512, "n_batch": 64, "n_threads": 1}
            with model.context(**sizes, type_k=kind, type_v=kind) as context:
                path = f"{folder}/{name}.{kind}.state"
                if verb == "save":
                    context.decode(tokens[:150])
                    context.save_sequence(0, path)
                    context.decode(tokens[150:-1])
                    snapshot = context.snapshot_sequence(0)
                    snapshot.write(path, adds=True)
                    snapshot.release()
                    assert context.memory.seq_rm(0, 5, 120)
                    context.memory.seq_add(0, 120, -1, -115)
                    snapshot = context.snapshot_sequence(0)
                    snapshot.write(path, adds=True)
                    snapshot.release()
                    assert len(context.read_saved(path).file.pieces) == 3
                else:
                    context.restore_sequence(0, path)
                said = [int(tokens[-1])]
                for _ in range(40):
                    said.append(int(context.decode(said[-1:]).argmax()))
                answers[f"{name} {kind}"] = said
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("restart")
    for name in MODELS:
        write_model(read_recipe(name), folder / f"{name}.gguf")
    return folder


def run(folder, verb):
    command = [sys.executable, "-c", _CONTINUE, folder, verb, ",".join(KV_TYPES)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_every_type_goes_on_after_a_restart(folder):
    before = run(folder, "save")
    assert run(folder, "restore") == before
    assert len(before) == len(MODELS) * len(KV_TYPES)
    assert any(len(set(said)) > 5 for said in before.values()), "the models only repeat themselves"
