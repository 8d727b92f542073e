"""How a kernel reads its argument block: word indices by name, integers and floats."""

from collections import namedtuple

from engine.compute.cpu import signatures
from engine.native.simd import callee, load_f32, load_i64


def indices(kernel):
    """Return the word indices of "unit/kernel" as a named tuple: `word(args, W.counter)`."""
    names = signatures.words(kernel)
    return namedtuple("Words", names)(*range(len(names)))


@callee
def word(args, i):
    """Word i of a block."""
    return load_i64(args + 8 * i)


@callee
def word_f32(args, i):
    """Word i of a block, whose low half holds the bits of an f32."""
    return load_f32(args + 8 * i)


@callee
def count(args, i):
    """The count at the address in word i."""
    return load_i64(load_i64(args + 8 * i))
