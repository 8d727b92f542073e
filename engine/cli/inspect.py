"""inspect: what a model file says of itself, its tensors, and what it needs in memory."""

import argparse
import json
from typing import Any

import numpy as np

from engine.cli.terminal import printable
from engine.errors import UnsupportedModelError
from engine.gguf import GGUF
from engine.memory.kv_layout import find_kv_type, page_bytes
from engine.models import kv_layers
from engine.params import KV_TYPES as KV_NAMES
from engine.runtime.model_info import Description, describe

N_SHOWN = 4  # items of a long list, characters of a long text times 20
PAGE_CELLS = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("file", metavar="F", help="a .gguf file, or any piece of a split one")
    parser.add_argument(
        "--n-ctx", "-c", type=int, default=4096, metavar="N", help="for the estimate"
    )
    parser.add_argument("--type-k", default="f16", choices=KV_NAMES, metavar="T")
    parser.add_argument("--type-v", default="f16", choices=KV_NAMES, metavar="T")
    parser.add_argument("--tensors", action="store_true", help="list every tensor")
    parser.add_argument("--json", action="store_true", help="everything, as one object")


def run(options: argparse.Namespace) -> int:
    """Describe a file; a damaged one raises ModelFileError, a foreign one is described too."""
    with GGUF.open(options.file) as file:
        found: dict[str, Any] = {
            "arch": file.arch,
            "n_params": file.n_params,
            "size_bytes": file.size_bytes,
            "quantizations": file.quantizations,
            "pieces": [path.name for path in file.paths],
            "metadata": {key: _short(value) for key, value in file.metadata.items()},
            "tensors": [_tensor(entry) for entry in file.tensors.values()],
            "runs": True,
            "reason": "",
        }
        try:
            found["memory"] = _memory(describe(file), options)
        except UnsupportedModelError as error:
            found |= {"runs": False, "reason": str(error)}
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        _print(found, options)
    return 0


def _tensor(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "type": entry.type.name,
        "shape": list(entry.shape),
        "n_bytes": entry.n_bytes,
    }


def _short(value: Any) -> Any:
    """Return a metadata value fit for JSON; of a long list its length and its first items."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (str, int, float, bool)):
        return value
    first = [_text(item) for item in value[:N_SHOWN]]
    return first if len(value) <= N_SHOWN else {"n": len(value), "first": first}


def _text(item: Any) -> Any:
    if isinstance(item, bytes):
        return item.decode("utf-8", "replace")
    return item.item() if isinstance(item, np.generic) else _short(item)


def _memory(model: Description, options: argparse.Namespace) -> dict[str, int]:
    """Return bytes of the weights (mapped from the file) and of K and V for `n_ctx` tokens."""
    n_ctx = options.n_ctx or model.hparams.n_ctx_train
    n_pages = -(-n_ctx // PAGE_CELLS)
    kinds = [find_kv_type(name) for name in (options.type_k, options.type_v)]
    per_page = sum(
        page_bytes(kinds[0], layer.n_head_kv, layer.head_size_k)
        + page_bytes(kinds[1], layer.n_head_kv, layer.head_size_v)
        for layer in kv_layers(model.layers)
    )
    weights = model.info.size_bytes
    return {
        "n_ctx": n_ctx,
        "weights_bytes": weights,
        "kv_bytes": n_pages * per_page,
        "kv_bytes_per_token": per_page // PAGE_CELLS,
        "total_bytes": weights + n_pages * per_page,
    }


def _print(found: dict[str, Any], options: argparse.Namespace) -> None:
    quantizations = ", ".join(f"{name} × {n}" for name, n in found["quantizations"].items())
    print(f"architecture   {printable(found['arch'])}")
    print(
        f"weights        {found['n_params']:,} in {len(found['tensors'])} tensors: {quantizations}"
    )
    print(f"size           {found['size_bytes']:,} bytes in {len(found['pieces'])} file(s)")
    if found["runs"]:
        memory = found["memory"]
        print(
            f"memory         {memory['total_bytes'] / 1e6:,.0f} MB: weights "
            f"{memory['weights_bytes'] / 1e6:,.0f} MB, K and V of {memory['n_ctx']:,} tokens "
            f"{memory['kv_bytes'] / 1e6:,.0f} MB"
        )
    else:
        print(f"cannot run     {found['reason']}")
    print()
    width = max((len(key) for key in found["metadata"]), default=0)
    for key, value in found["metadata"].items():
        print(f"{printable(key):{width}}  {_one_line(value)}")
    if options.tensors:
        print()
        for tensor in found["tensors"]:
            shape = " × ".join(str(size) for size in tensor["shape"])
            print(f"{tensor['type']:8} {shape:>20}  {printable(tensor['name'])}")


def _one_line(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['n']:,} items, the first {printable(str(value['first']))}"
    text = printable(str(value)).replace("\n", "\\n")
    return (
        text if len(text) <= 20 * N_SHOWN else f"{text[: 20 * N_SHOWN]}… ({len(text):,} characters)"
    )
