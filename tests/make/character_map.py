"""Builds the blob of a precompiled character map: what a Unigram vocabulary normalises by."""

import struct

LEAF, VALUE = 0x100, 0x80000000
MAX_NODES = 1 << 14


def character_map(replacements: dict[str, str]) -> bytes:
    """Return a blob that replaces each key by its text, longest key first."""
    texts, offsets = b"", {}
    for key, text in replacements.items():
        offsets[key.encode()] = len(texts)
        texts += text.encode() + b"\0"
    nodes: dict[int, int] = {}
    used: set[int] = set()
    nodes[0] = _place(b"", 0, sorted(offsets), offsets, nodes, used)
    array = [nodes.get(i, 0xFF) for i in range((max(nodes) | 0xFF) + 1)]
    blob = struct.pack(f"<{len(array)}I", *array)
    return struct.pack("<I", len(blob)) + blob + texts


def _place(prefix, place, keys, offsets, nodes, used):
    """Place all below `prefix`, whose node is at `place`; return its entry without the label."""
    labels = sorted({key[len(prefix)] for key in keys if len(key) > len(prefix)})
    slots = ([0] if prefix in offsets else []) + labels
    base = next(
        b
        for b in range(1, MAX_NODES)
        if b not in used and all((b ^ c) not in nodes and b ^ c for c in slots)
    )
    used.add(base)
    for c in slots:
        nodes[base ^ c] = VALUE | offsets.get(prefix, 0)
    for c in labels:
        nodes[base ^ c] = c  # taken, before anything below looks for room
    for c in labels:
        longer = prefix + bytes((c,))
        below = [key for key in keys if key.startswith(longer)]
        nodes[base ^ c] = c | _place(longer, base ^ c, below, offsets, nodes, used)
    return (base ^ place) << 10 | (LEAF if prefix in offsets else 0)
