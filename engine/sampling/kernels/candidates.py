"""The candidate array: filling it, its largest logits, its softmax, keeping a part of it.

Arrays are padded behind their last element with -inf (logits, keys) or 0 (probabilities) for
`MARGIN` elements, so passes run over whole vectors without a mask.
"""

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
    load_f32x16,
    load_i32,
    load_i64,
    max_f32,
    select_lt_f32,
    splat_f32,
    store_f32,
    store_f32x16,
    store_i32,
    sum_f32,
    vexp,
    vmax,
    zero_f32x16,
)
from engine.sampling.kernels.lanes import (
    get,
    imin,
    load_index,
    lowest_bit,
    mask_ge,
    mask_lt,
    n_bits,
    put,
)
from engine.sampling.words import (
    BUFFERS,
    HAS_PROBS,
    IDS,
    IN_ID_ORDER,
    IS_SORTED,
    KEYS,
    LOGITS,
    N_SORTED,
    N_VOCAB,
    NOT_FINITE,
    NOTHING_ALLOWED,
    OK,
    PROBS,
    SELECTED,
    SIZE,
    STATUS,
    TOKEN,
    VALUES,
)

INFINITY = float("inf")
MOST = 3.0e38  # beyond f32 softmax would give NaN, and no finite penalty forbids a token
CHUNK = 1024  # elements whose f32 sum is taken before it goes into an f64


@callee_out_of_line
def resize(run, n):
    """Keep the first n candidates and pad behind them."""
    put(run, SIZE, n)
    if get(run, N_SORTED) > n:
        put(run, N_SORTED, n)
    never = splat_f32(-INFINITY)
    for i in range(0, 64, 16):
        store_f32x16(get(run, VALUES) + 4 * (n + i), never)
        store_f32x16(get(run, KEYS) + 4 * (n + i), never)
        store_f32x16(get(run, PROBS) + 4 * (n + i), zero_f32x16())


@callee
def put_logit(at, logit):
    """Write the changed logit of a token that is not forbidden, held to finite f32."""
    store_f32(at, min(max(logit, -MOST), MOST))


@callee
def order_by(run, keys):
    """Name the array that orders the candidates; nothing is in place yet."""
    put(run, KEYS, keys)
    put(run, N_SORTED, 0)


@callee_out_of_line
def fill(run):
    """Take the model's row: candidate i is token i. NaN or +inf is an error of the run."""
    n, source, buffers = get(run, N_VOCAB), get(run, LOGITS), get(run, BUFFERS)
    values = load_i64(buffers + 8)
    put(run, IDS, load_i64(buffers))
    put(run, VALUES, values)
    put(run, PROBS, load_i64(buffers + 16))
    put(run, IN_ID_ORDER, 1)
    put(run, IS_SORTED, 0)
    order_by(run, values)
    put(run, HAS_PROBS, 0)
    put(run, SELECTED, -1)
    put(run, TOKEN, -1)
    put(run, STATUS, OK)
    limit, whole, finite = splat_f32(INFINITY), n & -16, 0xFFFF
    for i in range(0, whole, 16):
        x = load_f32x16(source + 4 * i)
        store_f32x16(values + 4 * i, x)
        finite &= mask_lt(x, limit)
    for i in range(whole, n):
        x = load_f32(source + 4 * i)
        store_f32(values + 4 * i, x)
        if not x < INFINITY:
            finite = 0
    if finite != 0xFFFF:
        put(run, STATUS, NOT_FINITE)
    resize(run, n)


@callee_out_of_line
def write_ids(run):
    """Write the ids of candidates that are still in id order."""
    if get(run, IN_ID_ORDER) != 0:
        ids = get(run, IDS)
        for i in range(get(run, SIZE)):
            store_i32(ids + 4 * i, i)
        put(run, IN_ID_ORDER, 0)


@callee
def id_at(run, i):
    if get(run, IN_ID_ORDER) != 0:
        return i
    return load_index(get(run, IDS) + 4 * i)


@callee_out_of_line
def largest(run):
    """The largest logit; -inf when every token is banned."""
    n, values = get(run, SIZE), get(run, VALUES)
    if get(run, IS_SORTED) != 0 and get(run, N_SORTED) > 0:
        return load_f32(values)
    m0 = m1 = m2 = m3 = splat_f32(-INFINITY)
    for at in range(values, values + 4 * n, 256):
        m0 = vmax(m0, load_f32x16(at))
        m1 = vmax(m1, load_f32x16(at + 64))
        m2 = vmax(m2, load_f32x16(at + 128))
        m3 = vmax(m3, load_f32x16(at + 192))
    return max_f32(vmax(vmax(m0, m1), vmax(m2, m3)))


@callee_out_of_line
def first_largest(run):
    """Index of the first candidate with the largest logit."""
    values, limit = get(run, VALUES), splat_f32(largest(run))
    for i in range(0, get(run, SIZE), 16):
        mask = mask_ge(load_f32x16(values + 4 * i), limit)
        if mask != 0:
            return i + lowest_bit(mask)
    return 0


@callee_out_of_line
def chunk_sum(at, n):
    """f32 sum of n probabilities, n up to CHUNK, as f64."""
    part = zero_f32x16()
    for i in range(0, n, 16):
        part = part + load_f32x16(at + 4 * i)
    return sum_f32(part) * 1.0


@callee_out_of_line
def weigh(run):
    """PROBS = exp(logit - largest); returns their sum, or 0 when every token is banned."""
    n, values, probs = get(run, SIZE), get(run, VALUES), get(run, PROBS)
    most = largest(run)
    if most == -INFINITY:
        put(run, STATUS, NOTHING_ALLOWED)
        return 0.0
    put(run, HAS_PROBS, 1)
    zero, shift, least = zero_f32x16(), splat_f32(most), splat_f32(-87.0)
    for i in range(0, n, 16):
        x = load_f32x16(values + 4 * i) - shift
        store_f32x16(probs + 4 * i, select_lt_f32(x, least, zero, vexp(x)))
    total = 0.0
    if n <= CHUNK:
        for i in range(n):
            total += load_f32(probs + 4 * i)
    else:
        for i in range(0, n, CHUNK):
            total += chunk_sum(probs + 4 * i, imin(CHUNK, n - i))
    return total


@callee_out_of_line
def scale(run, factor):
    """Multiply every probability by factor."""
    probs, by = get(run, PROBS), splat_f32(factor)
    for i in range(0, get(run, SIZE), 16):
        store_f32x16(probs + 4 * i, load_f32x16(probs + 4 * i) * by)


@callee
def softmax(run):
    """PROBS = softmax of the logits; returns the sum before dividing, 0 = nothing is allowed."""
    total = weigh(run)
    if total > 0.0:
        scale(run, 1.0 / total)
    return total


@callee_out_of_line
def n_reaching(run, array, least):
    """How many elements of VALUES or PROBS are >= least."""
    n, limit, found = get(run, SIZE), splat_f32(least), 0
    for i in range(0, n, 16):
        found += n_bits(mask_ge(load_f32x16(array + 4 * i), limit))
    return imin(found, n)


@callee
def move(run, source, target):
    """Copy one candidate to a place whose candidate is given up; ids are written."""
    for word in (IDS, VALUES, PROBS):
        store_i32(get(run, word) + 4 * target, load_i32(get(run, word) + 4 * source))


@callee_out_of_line
def keep_reaching(run, least):
    """Keep the candidates with a logit >= least, in their order."""
    n, values, limit, kept = get(run, SIZE), get(run, VALUES), splat_f32(least), 0
    ids, in_id_order = get(run, IDS), get(run, IN_ID_ORDER)
    for i in range(0, n, 16):
        mask = mask_ge(load_f32x16(values + 4 * i), limit)
        while mask != 0:
            source = i + lowest_bit(mask)
            mask &= mask - 1
            if in_id_order != 0:
                store_i32(ids + 4 * source, source)
            if source < n:
                move(run, source, kept)
                kept += 1
    put(run, IN_ID_ORDER, 0)
    resize(run, kept)
