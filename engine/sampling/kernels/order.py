"""Putting the largest candidates in front, in order, without sorting the rest.

The front is found through a bound: split the array into interleaved lanes, take each lane's
maximum; at least `want` elements reach the want-th largest of those maxima, and hardly more do.
One more pass collects them. Equal candidates keep their order.
"""

from engine.native.simd import (
    as_i32x16,
    callee,
    callee_out_of_line,
    load_f32x16,
    load_i32,
    load_i32x16,
    load_i64,
    splat_f32,
    splat_i32,
    store_f32x16,
    store_i32,
    store_i32x16,
    store_i64,
    vmax,
)
from engine.sampling.kernels.candidates import resize, write_ids
from engine.sampling.kernels.lanes import (
    f32_from_bits,
    get,
    imax,
    imin,
    load_index,
    lowest_bit,
    mask_ge,
    mask_ge_i32,
    n_bits,
    put,
)
from engine.sampling.words import (
    BACK,
    FRONT,
    IDS,
    IN_ID_ORDER,
    IS_SORTED,
    KEYS,
    MARKS,
    N_SORTED,
    N_VOCAB,
    PROBS,
    SIZE,
    VALUES,
)

INFINITY = float("inf")
MOST_LANES = 65536
SHELL_LIMIT = 1024  # up to here a shell sort beats three passes over 2048 counters


@callee
def rank_at(keys, i):
    """A whole number that orders like the f32 key i."""
    bits = load_index(keys + 4 * i)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@callee
def packed(rank, place):
    """One number that sorts ascending by descending rank, then by place."""
    return ((-1 - rank) << 32) | place


@callee
def lane_maxima(keys, n, lanes, n_lanes):
    """lanes[j] = rank of the largest key i with i % n_lanes == j."""
    for j in range(0, n_lanes, 16):
        store_f32x16(lanes + 4 * j, splat_f32(-INFINITY))
    for i in range(0, n, n_lanes):
        for j in range(0, imin(n_lanes, n - i), 16):
            most = vmax(load_f32x16(lanes + 4 * j), load_f32x16(keys + 4 * (i + j)))
            store_f32x16(lanes + 4 * j, most)
    for j in range(0, n_lanes, 16):
        bits = as_i32x16(load_f32x16(lanes + 4 * j))
        store_i32x16(lanes + 4 * j, bits ^ ((bits >> 31) & 0x7FFFFFFF))


@callee
def largest_bound(lanes, n_lanes, want):
    """The largest rank that at least `want` lanes reach."""
    bound = -0x80000000
    for bit in range(31, -1, -1):
        tried = bound + (1 << bit)
        limit, reached = splat_i32(tried), 0
        for j in range(0, n_lanes, 16):
            reached += n_bits(mask_ge_i32(load_i32x16(lanes + 4 * j), limit))
        if reached >= want:
            bound = tried
    return bound


@callee
def collect(keys, n, want, bound, front, back):
    """Pack the keys above the bound, and as many equal to it as are wanted, into `front`."""
    limit = splat_f32(f32_from_bits(bound ^ ((bound >> 31) & 0x7FFFFFFF)))
    n_above, n_equal = 0, 0
    for i in range(0, n, 16):
        mask = mask_ge(load_f32x16(keys + 4 * i), limit)
        while mask != 0:
            place = i + lowest_bit(mask)
            mask &= mask - 1
            if place < n:
                rank = rank_at(keys, place)
                if rank > bound:
                    store_i64(front + 8 * n_above, packed(rank, place))
                    n_above += 1
                elif n_equal < want:
                    store_i64(back + 8 * n_equal, packed(rank, place))
                    n_equal += 1
    for i in range(imin(n_equal, want - n_above)):
        store_i64(front + 8 * n_above, load_i64(back + 8 * i))
        n_above += 1
    return n_above


@callee
def shell_sort(front, n):
    """Sort n int64 in place."""
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            x, j = load_i64(front + 8 * i), i
            while j >= gap and load_i64(front + 8 * (j - gap)) > x:
                store_i64(front + 8 * j, load_i64(front + 8 * (j - gap)))
                j -= gap
            store_i64(front + 8 * j, x)


@callee
def radix_pass(source, target, n, counts, shift, sign):
    """Move n packed numbers to target, ordered by 11 bits of their rank, stably.

    `sign` is the place of the sign bit in these bits (it counts the other way), or 0.
    """
    size = 2048
    mask = 1023 if sign else 2047  # above the sign bit there are only copies of it
    for digit in range(size):
        store_i32(counts + 4 * digit, 0)
    for i in range(n):
        digit = ((load_i64(source + 8 * i) >> shift) & mask) ^ sign
        store_i32(counts + 4 * digit, load_i32(counts + 4 * digit) + 1)
    total = 0
    for digit in range(size):
        count = load_index(counts + 4 * digit)
        store_i32(counts + 4 * digit, total)
        total += count
    for i in range(n):
        x = load_i64(source + 8 * i)
        digit = ((x >> shift) & mask) ^ sign
        place = load_index(counts + 4 * digit)
        store_i64(target + 8 * place, x)
        store_i32(counts + 4 * digit, place + 1)


@callee
def sort_packed(front, back, n, counts):
    """Sort n packed numbers in `front`; `back` and `counts` are scratch."""
    if n <= SHELL_LIMIT:
        shell_sort(front, n)
        return
    source, target = front, back
    for turn in range(3):
        radix_pass(source, target, n, counts, 32 + 11 * turn, 0x200 if turn == 2 else 0)
        source, target = target, source
    for i in range(n):
        store_i64(front + 8 * i, load_i64(back + 8 * i))


@callee_out_of_line
def collect_front(run, done, want):
    """Pack the `want` (or a few more) largest keys from `done` on into FRONT, sorted.

    Returns how many; a packed number's low half is the place behind `done`.
    """
    front, back = get(run, FRONT), get(run, BACK)
    keys, n = get(run, KEYS) + 4 * done, get(run, SIZE) - done
    n_lanes = 4096 if n >= 32768 else 1024
    while 3 * n_lanes < 4 * want and n_lanes < MOST_LANES:
        n_lanes *= 4
    found = n
    if n >= 4 * n_lanes and 4 * want <= 3 * n_lanes:
        lane_maxima(keys, n, back, n_lanes)
        bound = largest_bound(back, n_lanes, want)
        found = collect(keys, n, want, bound, front, back)
    if 4 * found > n:
        found = n
        for i in range(n):
            store_i64(front + 8 * i, packed(rank_at(keys, i), i))
    sort_packed(front, back, found, get(run, BACK) + 8 * get(run, N_VOCAB))
    return found


@callee
def gather(run, array, done, n):
    """Read n elements of an array in FRONT's order into BACK."""
    front, back = get(run, FRONT), get(run, BACK)
    for i in range(n):
        place = load_i64(front + 8 * i) & 0xFFFFFFFF
        store_i32(back + 4 * i, load_i32(array + 4 * (done + place)))


@callee
def scatter(run, array, done, n):
    """Write BACK's n elements to an array from `done` on."""
    back = get(run, BACK)
    for i in range(n):
        store_i32(array + 4 * (done + i), load_i32(back + 4 * i))


@callee
def find_exchanges(run, n, pairs):
    """List (taken place behind the front, free place in the front) of FRONT's n; returns how many.

    Whatever stands in the front without belonging there goes where a front element comes from.
    """
    front, marks, n_holes, n_pairs = get(run, FRONT), get(run, MARKS), 0, 0
    for i in range(n):
        place = load_i64(front + 8 * i) & 0xFFFFFFFF
        if place < n:
            store_i32(marks + 4 * place, 1)
        else:
            store_i32(pairs + 8 * n_holes, place)
            n_holes += 1
    for place in range(n):
        if load_i32(marks + 4 * place) == 0:
            store_i32(pairs + 8 * n_pairs + 4, place)
            n_pairs += 1
        store_i32(marks + 4 * place, 0)
    return n_pairs


@callee
def bring_forward(run, array, done, n, pairs, n_pairs):
    """Put FRONT's n elements of one array in front, what stood there into their places."""
    gather(run, array, done, n)
    for i in range(n_pairs):
        hole, place = load_i32(pairs + 8 * i), load_i32(pairs + 8 * i + 4)
        store_i32(array + 4 * (done + hole), load_i32(array + 4 * (done + place)))
    scatter(run, array, done, n)


@callee_out_of_line
def order_front(run, want):
    """Have at least the first `want` candidates of a sorted array really in place."""
    done = get(run, N_SORTED)
    want = imin(want, get(run, SIZE))
    if want <= done:
        return
    write_ids(run)
    n = collect_front(run, done, want - done)
    pairs = get(run, BACK) + 4 * get(run, N_VOCAB)
    n_pairs = 0
    if n < get(run, SIZE) - done:
        n_pairs = find_exchanges(run, n, pairs)
    bring_forward(run, get(run, IDS), done, n, pairs, n_pairs)
    bring_forward(run, get(run, VALUES), done, n, pairs, n_pairs)
    bring_forward(run, get(run, PROBS), done, n, pairs, n_pairs)
    if get(run, KEYS) != get(run, VALUES):
        bring_forward(run, get(run, KEYS), done, n, pairs, n_pairs)
    put(run, N_SORTED, done + n)


@callee
def order_more(run):
    """Have more candidates in place than now: 256, then three times as many each time."""
    order_front(run, imax(256, 3 * get(run, N_SORTED)))


@callee_out_of_line
def sort(run):
    """Make the array sorted by logit, though nothing is moved yet."""
    if get(run, IS_SORTED) == 0:
        put(run, IS_SORTED, 1)
        put(run, N_SORTED, 0)


@callee_out_of_line
def take_front(run, n):
    """Keep the n largest candidates, in order."""
    size = get(run, SIZE)
    if n >= size:
        sort(run)
    elif get(run, IS_SORTED) != 0:
        order_front(run, n)
        resize(run, n)
    else:
        done = get(run, N_SORTED)  # nothing of an unsorted array is in place
        collect_front(run, done, n)
        if get(run, IN_ID_ORDER) != 0:
            front, ids = get(run, FRONT), get(run, IDS)
            for i in range(n):
                store_i32(ids + 4 * i, load_i64(front + 8 * i) & 0xFFFFFFFF)
            put(run, IN_ID_ORDER, 0)
        else:
            gather(run, get(run, IDS), done, n)
            scatter(run, get(run, IDS), done, n)
        gather(run, get(run, VALUES), done, n)
        scatter(run, get(run, VALUES), done, n)
        gather(run, get(run, PROBS), done, n)
        scatter(run, get(run, PROBS), done, n)
        put(run, IS_SORTED, 1)
        put(run, N_SORTED, n)
        resize(run, n)


@callee_out_of_line
def unsort(run):
    """Give up the order before logits change, with every candidate where the order had it."""
    if get(run, IS_SORTED) != 0:
        order_front(run, get(run, SIZE))
        put(run, IS_SORTED, 0)
        put(run, N_SORTED, 0)
