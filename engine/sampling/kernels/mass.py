"""Where the probability of the largest candidates reaches a sum, without sorting all of them.

A bound on the logits is halved until few candidates are left between “too few” and “enough”; only
those are sorted. Each halving is one pass over whole vectors.
"""

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
    load_f32x16,
    load_f64,
    load_i64,
    select_lt_f32,
    splat_f32,
    store_f64,
    store_i64,
    sum_f32,
    zero_f32x16,
)
from engine.sampling.kernels.candidates import CHUNK, move, resize, write_ids
from engine.sampling.kernels.lanes import (
    f32_from_bits,
    get,
    imin,
    lowest_bit,
    mask_ge,
    n_bits,
    put,
)
from engine.sampling.kernels.order import packed, rank_at, sort_packed
from engine.sampling.words import BACK, FRONT, N_SORTED, N_VOCAB, PROBS, SIZE, VALUES

MANY = 2304  # this many are sorted before the rest is looked at in this way
FEW = 2048  # so many are sorted at the end
LOWEST_RANK = -0x7F800001  # of -inf
NEVER = 0x7FFFFFFFFFFFFFFF  # no candidate is packed so


@callee
def rank_here(values, place):
    """As `rank_at`, but with one rank for both zeros, which vectors do not tell apart either."""
    rank = rank_at(values, place)
    return rank if rank != -1 else 0


@callee
def logit_of(rank):
    """The f32 that has a rank; see `rank_at`."""
    return f32_from_bits(rank ^ ((rank >> 31) & 0x7FFFFFFF))


@callee_out_of_line
def mass_from(run, rank):
    """Count the candidates behind the sorted ones with at least a rank; their p go to BACK."""
    done = get(run, N_SORTED)
    n, values, probs = (
        get(run, SIZE) - done,
        get(run, VALUES) + 4 * done,
        get(run, PROBS) + 4 * done,
    )
    limit, zero, count, mass = splat_f32(logit_of(rank)), zero_f32x16(), 0, 0.0
    for start in range(0, n, CHUNK):
        part = zero
        for i in range(start, imin(start + CHUNK, n), 16):
            x = load_f32x16(values + 4 * i)
            part = part + select_lt_f32(x, limit, zero, load_f32x16(probs + 4 * i))
            count += n_bits(mask_ge(x, limit))
        mass += sum_f32(part)
    store_f64(get(run, BACK), mass)
    return imin(count, n)


@callee_out_of_line
def collect_between(run, low, high):
    """Pack the candidates behind the sorted ones with low <= rank < high into FRONT, sorted."""
    done, front = get(run, N_SORTED), get(run, FRONT)
    n, values, found = get(run, SIZE) - done, get(run, VALUES) + 4 * done, 0
    limit = splat_f32(logit_of(low))
    for i in range(0, n, 16):
        mask = mask_ge(load_f32x16(values + 4 * i), limit)
        while mask != 0:
            place = i + lowest_bit(mask)
            mask &= mask - 1
            if place < n:
                rank = rank_here(values, place)
                if low <= rank < high:
                    store_i64(front + 8 * found, packed(rank, place))
                    found += 1
    if high - low > 1:  # else they are equal, and in their order already
        sort_packed(front, get(run, BACK), found, get(run, BACK) + 8 * get(run, N_VOCAB))
    return found


@callee_out_of_line
def reach(run, running, target, least):
    """The candidate behind the sorted ones with which the sum of p reaches the target.

    `running` is the sum of the sorted ones; at least `least` more have to be among them. Returns
    its rank and place as `packed`, the place counted behind the sorted ones; NEVER if all of them
    together do not reach it.
    """
    low, high, count = LOWEST_RANK, rank_here(get(run, VALUES), 0) + 1, mass_from(run, LOWEST_RANK)
    if running + load_f64(get(run, BACK)) < target or count < least:
        return NEVER
    n_above, above = 0, running
    while high - low > 1 and count - n_above > FEW:
        middle = (low + high) >> 1
        n = mass_from(run, middle)
        mass = running + load_f64(get(run, BACK))
        if mass >= target and n >= least:
            low, count = middle, n
        else:
            high, n_above, above = middle, n, mass
    found, front = collect_between(run, low, high), get(run, FRONT)
    probs, last = get(run, PROBS) + 4 * get(run, N_SORTED), NEVER
    for i in range(found):
        last = load_i64(front + 8 * i)
        above += load_f32(probs + 4 * (last & 0xFFFFFFFF))
        if above >= target and n_above + i + 1 >= least:
            break
    return last


@callee_out_of_line
def keep_up_to(run, last):
    """Keep the sorted candidates and of the rest those up to one that `reach` returned."""
    write_ids(run)
    kept = done = get(run, N_SORTED)
    n, values = get(run, SIZE) - done, get(run, VALUES) + 4 * done
    limit = splat_f32(logit_of(-1 - (last >> 32)))
    for i in range(0, n, 16):
        mask = mask_ge(load_f32x16(values + 4 * i), limit)
        while mask != 0:
            place = i + lowest_bit(mask)
            mask &= mask - 1
            if place < n and packed(rank_here(values, place), place) <= last:
                move(run, done + place, kept)
                kept += 1
    put(run, N_SORTED, done)
    resize(run, kept)
