"""Tiny models of an architecture: recipes (metadata, names, shapes) written as GGUF files.

Every weight is drawn from a generator seeded by the tensor's name, so a file is the same
everywhere, and so are the logits that the reference program computed for it.
"""

import json
import zlib
from pathlib import Path

import gguf
import numpy as np

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with the project."""
    return sorted(path.name.removesuffix(".json") for path in (GOLDEN / "archs").glob("*.json"))


def read_recipe(name: str) -> dict:
    """Return a recipe: arch, seed, n_vocab, kv {key: [type, value]}, tensors {name: shape}."""
    return json.loads((GOLDEN / "archs" / f"{name}.json").read_text())


def read_expected(name: str) -> dict[str, np.ndarray]:
    """Return tokens (fed as one sequence), positions, and the logits of those positions."""
    with np.load(GOLDEN / "expected" / f"{name}.npz") as arrays:
        return dict(arrays)


def write_model(recipe: dict, path: Path, convert=None) -> Path:
    """Write the model of a recipe; `convert(name, array)` may return (bytes, gguf type)."""
    writer = gguf.GGUFWriter(path, recipe["arch"])
    types = gguf.GGUFValueType
    for key, (kind, value) in recipe["kv"].items():
        if key == "general.architecture":
            continue
        if kind.startswith("ARRAY:"):
            writer.add_key_value(key, value, types.ARRAY, sub_type=types[kind[6:]])
        else:
            writer.add_key_value(key, value, types[kind])
    if "n_vocab" in recipe:
        _add_vocabulary(writer, recipe["n_vocab"])
    for name, shape in recipe["tensors"].items():
        array = draw_weights(name, shape, recipe["seed"])
        stored = convert(name, array) if convert else None
        if stored is None:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, stored[0], raw_dtype=stored[1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, n: int) -> None:
    writer.add_key_value("tokenizer.ggml.model", "test", gguf.GGUFValueType.STRING)
    writer.add_array("tokenizer.ggml.tokens", [f"tok_{i}" for i in range(n)])
    writer.add_array("tokenizer.ggml.scores", [0.0] * n)
    writer.add_array("tokenizer.ggml.token_type", [1] * n)


def draw_weights(name: str, shape: list[int], seed: int) -> np.ndarray:
    """Return the float32 weights of a tensor, its dimensions in NumPy's order."""
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode()) + (seed << 32)))
    drawn = generator.standard_normal(shape[::-1], dtype=np.float32)
    if "norm" in name and name.endswith(".weight"):
        drawn = 1 + 0.1 * drawn
    elif name.startswith("rope_"):
        drawn = 1 + 0.2 * np.abs(drawn)
    elif len(shape) >= 2 and shape[0] > 1:
        drawn = drawn / np.float32(np.sqrt(shape[0]))
    else:
        drawn = 0.1 * drawn
    return np.ascontiguousarray(drawn, np.float32)


def normalised_square(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the mean square of the difference over the mean square of what is expected."""
    return float(((found - expected) ** 2).mean() / (expected**2).mean())
