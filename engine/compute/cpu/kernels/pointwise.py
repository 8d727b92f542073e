"""Kernels that work row by row and need no weights of a quantized type."""

from numba import types

from engine.compute.cpu.kernels import activation, norm, rope, router
from engine.compute.cpu.kernels.pages import copy_pages
from engine.compute.cpu.kernels.rows import load_upto, n_stretches, store_upto, stretch
from engine.compute.cpu.kernels.words import count, indices, inner_word, word, word_f32
from engine.compute.cpu.signatures import N_OUTPUTS, OUTPUT_ROWS
from engine.native.simd import (
    callee,
    load_i32,
    splat_f32,
    store_i64,
    vexp,
)

CLEAR, ADD, SCALE = (indices(f"pointwise/{name}") for name in ("clear", "add", "scale"))
SOFTCAP, GATHER = (indices(f"pointwise/{name}") for name in ("softcap", "gather"))


def clear(args, thread, n_threads):
    """Zero the counters that ops hand out work with."""
    if thread == 0:
        for i in range(word(args, CLEAR.n_words)):
            store_i64(word(args, CLEAR.counters) + 8 * i, 0)


def _two_operands(op):
    """Make a kernel out = op(x, y)."""

    def kernel(args, thread, n_threads):
        n = word(args, ADD.n)
        for item in range(thread, n_stretches(count(args, ADD.n_rows), n), n_threads):
            t, first, end = stretch(item, n)
            x = word(args, ADD.x) + t * word(args, ADD.ldx)
            y = word(args, ADD.y) + t * word(args, ADD.ldy)
            out = word(args, ADD.out) + t * word(args, ADD.ldo)
            for i in range(first, end, 16):
                v = op(load_upto(x + 4 * i, end - i), load_upto(y + 4 * i, end - i))
                store_upto(out + 4 * i, v, end - i)

    return kernel


add = _two_operands(callee(lambda x, y: x + y))
multiply = _two_operands(callee(lambda x, y: x * y))


def _with_constant(words, op, constant):
    """Make a kernel out = op(x, splat of the f32 in the word `constant`)."""

    def kernel(args, thread, n_threads):
        n, c = word(args, words.n), splat_f32(word_f32(args, constant))
        for item in range(thread, n_stretches(count(args, words.n_rows), n), n_threads):
            t, first, end = stretch(item, n)
            x = word(args, words.x) + t * word(args, words.ldx)
            out = word(args, words.out) + t * word(args, words.ldo)
            for i in range(first, end, 16):
                store_upto(out + 4 * i, op(load_upto(x + 4 * i, end - i), c), end - i)

    return kernel


@callee
def softcapped(x, cap):
    """cap * tanh(x / cap)."""
    one = splat_f32(types.float32(1))
    two = one + one
    return cap * (one - two / (vexp(x / cap * two) + one))


scale = _with_constant(SCALE, callee(lambda x, factor: x * factor), SCALE.factor)
softcap = _with_constant(SOFTCAP, softcapped, SOFTCAP.cap)


def gather(args, thread, n_threads):
    """out[i] = x[output_rows[i]]."""
    n = word(args, GATHER.n)
    for item in range(thread, n_stretches(inner_word(args, GATHER.batch, N_OUTPUTS), n), n_threads):
        t, first, end = stretch(item, n)
        row = load_i32(inner_word(args, GATHER.batch, OUTPUT_ROWS) + 4 * t)
        x = word(args, GATHER.x) + row * word(args, GATHER.ldx)
        out = word(args, GATHER.out) + t * word(args, GATHER.ldo)
        for i in range(first, end, 16):
            store_upto(out + 4 * i, load_upto(x + 4 * i, end - i), end - i)


def kernels():
    """Return the kernels of the unit."""
    return {
        "activate": activation.activate,
        "add": add,
        "clear": clear,
        "combine": router.combine,
        "copy_pages": copy_pages,
        "gather": gather,
        "layer_norm": norm.layer_norm,
        "multiply": multiply,
        "post_norm_add": norm.post_norm_add,
        "rms_norm": norm.rms_norm,
        "rope_table": rope.rope_table,
        "router": router.router,
        "scale": scale,
        "softcap": softcap,
    }
