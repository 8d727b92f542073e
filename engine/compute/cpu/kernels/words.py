"""How a kernel reads its argument block: word indices by name, integers and floats."""

from types import ModuleType

import numpy as np
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu import signatures
from engine.native.simd import F32, I64, load_ir


def indices(kernel):
    """Return the word indices of "unit/kernel" by name: `word(args, W.counter)`.

    They are attributes of a module, because Numba reads those as constants; every use of a named
    tuple would lower the whole tuple.
    """
    found = ModuleType(kernel)
    for i, name in enumerate(signatures.words(kernel)):
        setattr(found, name, i)
    return found


# For arguments of callees: a plain 0 would be another type to Numba and compile a second copy.
NONE = np.int64(0)


def _word_ir(b, args, i, ty=I64):
    """Emit word i (an LLVM int64) of the block at args."""
    return load_ir(b, b.add(args, b.shl(i, I64(3))), ty)


# Intrinsics rather than callees: there are hundreds of uses, and a call costs the compiler more.
@intrinsic
def word(typing, args, i):
    """Word i of a block."""

    def emit(context, b, sig, a):
        return _word_ir(b, a[0], a[1])

    return types.int64(types.int64, types.int64), emit


@intrinsic
def word_f32(typing, args, i):
    """Word i of a block, whose low half holds the bits of an f32."""

    def emit(context, b, sig, a):
        return _word_ir(b, a[0], a[1], F32)

    return types.float32(types.int64, types.int64), emit


@intrinsic
def inner_word(typing, args, i, j):
    """Word j of the block whose address is word i."""

    def emit(context, b, sig, a):
        return _word_ir(b, _word_ir(b, a[0], a[1]), a[2])

    return types.int64(types.int64, types.int64, types.int64), emit


@intrinsic
def count(typing, args, i):
    """The count at the address in word i."""

    def emit(context, b, sig, a):
        return load_ir(b, _word_ir(b, a[0], a[1]), I64)

    return types.int64(types.int64, types.int64), emit


@intrinsic
def padded(typing, n):
    """A head size in storage: the next multiple of 16."""

    def emit(context, b, sig, a):
        return b.and_(b.add(a[0], I64(15)), I64(-16))

    return types.int64(types.int64), emit
