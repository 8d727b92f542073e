"""Tiny scripted models with the interface of the runtime: bytes are tokens, memory is a list.

They are strict where a real context is: positions must go on without a gap, cells are counted,
and what a decode sees is exactly what memory holds, so a wrong reuse changes the text.
"""

import json
import random
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from engine.errors import ContextFullError, RequestError, StateFileError
from engine.server.loaded import Loaded

BOS, EOS, MARK = 256, 257, 258
N_VOCAB = 260
END_OF_PROMPT = b">"


class ByteVocab:
    """Each byte is a token; BOS, EOS and one more special token follow."""

    n_tokens = N_VOCAB
    bos, eos, eog_ids = BOS, EOS, (EOS,)
    ids = SimpleNamespace(fim_pre=-1, fim_suf=-1, fim_mid=-1, fim_rep=-1, fim_sep=-1)
    switches = SimpleNamespace(add_bos=True)

    def piece(self, token, special=True):
        if token < 256:
            return bytes([token])
        return {BOS: b"<s>", EOS: b"</s>"}.get(token, b"<mark>") if special else b""


def encode(prompt):
    """Make token ids of a prompt: text with BOS, ids as they are, messages one line each."""
    if isinstance(prompt, str):
        return [BOS, *prompt.encode()]
    if prompt and isinstance(prompt[0], dict):
        lines = "".join(f"{m['role']}: {m['content']}\n" for m in prompt)
        return [BOS, *lines.encode(), *END_OF_PROMPT]
    return list(prompt)


class ListMemory:
    """Sequences as position to token, over a limited number of cells; shared prefixes cost once."""

    def __init__(self, n_cells):
        self.n_cells = n_cells
        self.sequences = {}
        self.snapshots = []
        self.calls = []

    def cells(self, seq):
        return self.sequences.setdefault(seq, {})

    def tokens(self, seq):
        cells = self.cells(seq)
        assert sorted(cells) == list(range(len(cells))), f"sequence {seq} has a gap"
        return [cells[pos] for pos in range(len(cells))]

    def n_used(self, *, counts_held=True):
        lists = [self.tokens(seq) for seq in self.sequences]
        lists += [snapshot.tokens for snapshot in self.snapshots] if counts_held else []
        return len({tuple(tokens[: i + 1]) for tokens in lists for i in range(len(tokens))})

    def seq_rm(self, seq, p0, p1):
        self.calls.append(("seq_rm", seq, p0, p1))
        p1 = 1 << 31 if p1 < 0 else p1
        kept = {pos: token for pos, token in self.cells(seq).items() if not p0 <= pos < p1}
        self.sequences[seq] = kept
        return True

    def seq_cp(self, src, dst, p0, p1):
        self.calls.append(("seq_cp", src, dst, p0, p1))
        assert p0 == 0
        assert not self.cells(dst), f"sequence {dst} knows something already"
        tokens = self.tokens(src)
        self.sequences[dst] = dict(enumerate(tokens[: len(tokens) if p1 < 0 else p1]))

    def seq_add(self, seq, p0, p1, delta):
        self.calls.append(("seq_add", seq, p0, p1, delta))
        p1 = 1 << 31 if p1 < 0 else p1
        moved = {}
        for pos, token in self.cells(seq).items():
            to = pos + delta if p0 <= pos < p1 else pos
            assert to not in moved, f"two tokens of sequence {seq} at {to}"
            moved[to] = token
        self.sequences[seq] = moved

    def stats(self):
        """Bytes as cells that only snapshots hold."""
        return {"bytes_kept": self.n_used() - self.n_used(counts_held=False)}

    def forget_spare(self):
        """No text that is embedded takes cells here."""

    def count_bytes(self, seq):
        return 8 * len(self.cells(seq))

    def begin_anew(self):
        self.sequences.clear()
        self.snapshots.clear()

    def check_integrity(self):
        for seq in self.sequences:
            self.tokens(seq)

    def seq_pos_min(self, seq):
        return min(self.cells(seq), default=-1)

    def seq_pos_max(self, seq):
        return max(self.cells(seq), default=-1)


class ListSnapshot:
    """What a sequence of a ListMemory held; counts in its cells until released."""

    def __init__(self, memory, tokens):
        self.tokens, self.memory = tokens, memory
        self.n_bytes, self.pos_min = len(tokens), 0
        memory.snapshots.append(self)

    def write(self, path, extras=(), *, adds=False, behind=()):
        assert self in self.memory.snapshots, "written after it was released"
        write_json(path, self.tokens, dict(extras))
        return Path(path).stat().st_size

    def release(self):
        if self in self.memory.snapshots:
            self.memory.snapshots.remove(self)


def write_json(path, tokens, extras):
    extras = {name: array.tolist() for name, array in extras.items()}
    part = Path(f"{path}.part")
    part.write_text(json.dumps({"tokens": tokens, "extras": extras}))
    part.replace(path)


class Saved:
    checkpoints = ()

    def __init__(self, path):
        try:
            content = json.loads(Path(path).read_text())
            self.tokens = content["tokens"]
            extras = content["extras"]
        except (OSError, ValueError, KeyError) as error:
            raise StateFileError(f"{path} cannot be read: {error}") from error
        self.extras = {name: np.array(a, np.float32) for name, a in extras.items()}


class ScriptedEmbedding:
    """A text on its way to a vector: each token with its place, or their mean."""

    def __init__(self, context, tokens, pooling):
        self.context, self.tokens, self.pooling, self.n_read = context, tokens, pooling, 0

    def step(self, n_most):
        piece = self.tokens[self.n_read : self.n_read + n_most]
        self.context.embed_piece(piece, self.n_read)
        self.n_read += len(piece)
        return self.n_read == len(self.tokens)

    def result(self):
        rows = np.array([[token, i, 1] for i, token in enumerate(self.tokens)], np.float32)
        if self.pooling == "rank":
            return np.array([[len(self.tokens), -1]], np.float32)
        return rows if self.pooling == "none" else rows.mean(axis=0, keepdims=True)


class ScriptedContext:
    """`logits_of(tokens)` says what follows a sequence; failures and gates are set by the test."""

    def __init__(self, logits_of, n_cells=4096):
        self.memory = ListMemory(n_cells)
        self.logits_of = logits_of
        self.decodes = []  # (tokens, positions, seq_ids, want) of each call that succeeded
        self.aborted = threading.Event()
        self.before_decode = lambda tokens, seq_ids: None

    def abort(self):
        self.aborted.set()

    def forget_abort(self):
        self.aborted.clear()

    @property
    def n_tokens_decoded(self):
        return sum(len(tokens) for tokens, *_ in self.decodes)

    def decode(self, tokens, positions=None, seq_ids=0, want="last"):
        self.before_decode(tokens, seq_ids)
        if self.aborted.is_set():
            self.aborted.clear()
            raise RequestError("The decode was stopped.")
        before = {seq: dict(cells) for seq, cells in self.memory.sequences.items()}
        rows = {}
        for row, (token, pos, seq) in enumerate(zip(tokens, positions, seq_ids, strict=True)):
            cells = self.memory.cells(seq)
            if pos != len(cells):
                raise RequestError(f"sequence {seq} holds {len(cells)} tokens, not {pos}")
            cells[pos] = token
            if row in want:
                rows[row] = self.logits_of(self.memory.tokens(seq))
        if self.memory.n_used() > self.memory.n_cells:
            self.memory.sequences = before
            raise ContextFullError("There is no free cell in memory.")
        self.decodes.append((list(tokens), list(positions), list(seq_ids), list(want)))
        return np.array([rows[row] for row in want], np.float32).reshape(-1, N_VOCAB)

    def embedding(self, tokens, pooling=None):
        return ScriptedEmbedding(self, tokens, pooling)

    def embed_piece(self, tokens, start):
        """Read a piece of a text that is embedded."""

    def snapshot_sequence(self, seq_id):
        return ListSnapshot(self.memory, self.memory.tokens(seq_id))

    def restore_snapshot(self, snapshot, seq_id):
        assert snapshot in self.memory.snapshots, "restored after it was released"
        self.memory.sequences[seq_id] = dict(enumerate(snapshot.tokens))
        return list(snapshot.tokens)

    def peek_saved(self, path):
        return Saved(path).tokens

    def peek_checkpoints(self, path):
        return ()

    def read_saved(self, path):
        return Saved(path)

    def copy_saved(self, source, target, n_tokens=-1):
        saved = Saved(source)
        if n_tokens >= 0:
            saved.tokens = saved.tokens[:n_tokens]
        write_json(target, saved.tokens, saved.extras)
        return saved

    def restore_saved(self, saved, seq_id):
        before = self.memory.cells(seq_id)
        self.memory.sequences[seq_id] = dict(enumerate(saved.tokens))
        if self.memory.n_used() > self.memory.n_cells:
            self.memory.sequences[seq_id] = before
            raise StateFileError("The saved memory does not fit.")
        return list(saved.tokens)


class SeededSampler:
    """Argmax at temperature 0, else a seeded draw; goes on drawing when parameters change."""

    must_end = False
    is_reasoning = False

    def __init__(self, request, prompt=()):
        self.params = request.params
        self.random = random.Random(request.params.seed)
        self.accepted = []

    def apply(self, logits):
        if self.params.temperature == 0:
            return int(np.argmax(logits))
        weights = np.exp(logits - np.max(logits))
        return self.random.choices(range(len(weights)), weights)[0]

    def accept(self, token):
        self.accepted.append(token)

    def accept_all(self, tokens):
        self.accepted.extend(tokens)

    def update(self, **changes):
        params = self.params.replace(**changes)
        if "nonsense" in params.samplers:
            raise RequestError("There is no sampler “nonsense”.")
        self.params = params


class Ranking(NamedTuple):
    ids: np.ndarray
    logprobs: np.ndarray
    logprob: float


def rank_row(row, token, n):
    logprobs = np.asarray(row, np.float64) - np.log(np.exp(row.astype(np.float64)).sum())
    top = np.argsort(-logprobs)[:n]
    return Ranking(top, logprobs[top], logprobs[token])


def rank_after(sampler, token, n):
    return Ranking(np.array([token]), np.zeros(1), 0.0)


def one_hot(token):
    row = np.zeros(N_VOCAB, np.float32)
    row[token] = 100.0
    return row


def answering(answer):
    """Return a model that, after a prompt ending in ">", says `answer(prompt bytes)`, then EOS.

    `answer` may be bytes, or a list of token ids to be said one by one.
    """

    def logits_of(tokens):
        at = len(tokens) - 1 - tokens[::-1].index(END_OF_PROMPT[0])
        prompt = bytes(token for token in tokens[: at + 1] if token < 256)
        said = tokens[at + 1 :]
        whole = list(answer(prompt) if callable(answer) else answer)
        assert said == whole[: len(said)], f"memory holds {said}, the script said {whole}"
        return one_hot(whole[len(said)] if len(said) < len(whole) else EOS)

    return logits_of


def chaotic(seed=0):
    """Return a model whose next token depends on every token before it."""

    def logits_of(tokens):
        return np.random.default_rng([seed, *tokens]).normal(size=N_VOCAB).astype(np.float32)

    return logits_of


def loaded(
    logits_of,
    *,
    n_cells=4096,
    n_ctx=1024,
    n_batch=64,
    stop_words=(),
    context=None,
    forks=(100, 101),
):
    """Return a scripted model as the engine loop takes it."""
    return Loaded(
        context=context or ScriptedContext(logits_of, n_cells),
        vocab=ByteVocab(),
        encode=encode,
        tokenize=lambda text: list(text.encode()),
        make_sampler=SeededSampler,
        rank_row=rank_row,
        rank_after=rank_after,
        n_ctx_slot=n_ctx,
        n_batch=n_batch,
        forks=forks,
        stop_words=stop_words,
    )
