"""KV_TYPES: how the elements of K and V pages are stored, one row per cache type."""

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.native.simd import (
    I32,
    I64,
    f16_to_f32_ir,
    f32_to_f16_ir,
    f32x16,
    i16x16,
    ir_type,
    load_ir,
    ptr,
)


@dataclass(frozen=True)
class KVType:
    """Bytes of an element, and the emitters of 16 lanes: stored to <16 x float> and back."""

    n_bytes: int
    stored: ir.Type
    decode: Callable
    encode: Callable

    def load_ir(self, b, addr, offset=0):
        """Emit 16 neighbouring elements as floats."""
        return self.decode(b, load_ir(b, addr, self.stored, offset))


KV_TYPES = {
    "f16": KVType(2, ir_type(i16x16), f16_to_f32_ir, f32_to_f16_ir),
    "f32": KVType(4, ir_type(f32x16), lambda b, x: x, lambda b, x: x),
}


def loader(kv):
    """Make load(addr) -> 16 floats of the stored type."""

    @intrinsic
    def load(typing, addr):
        return f32x16(types.int64), lambda context, b, sig, a: kv.load_ir(b, a[0])

    return load


def storer(kv):
    """Make store(addr, v): 16 lanes as neighbouring stored elements."""

    @intrinsic
    def store(typing, addr, v):
        def emit(context, b, sig, a):
            b.store(kv.encode(b, a[1]), ptr(b, a[0], kv.stored), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, f32x16), emit

    return store


def scatterer(kv, stride):
    """Make scatter(addr, v): lane i stored alone at addr + i * stride bytes."""

    @intrinsic
    def scatter(typing, addr, v):
        def emit(context, b, sig, a):
            stored = kv.encode(b, a[1])
            for i in range(16):
                at = ptr(b, b.add(a[0], I64(i * stride)), kv.stored.element)
                b.store(b.extract_element(stored, I32(i)), at, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, f32x16), emit

    return scatter
