"""The words of one sampling run: where the chain writes what the kernels read, and back.

A run is one block of int64 words (`RUN_WORDS`) and a list of steps, `STEP_WORDS` words each: the
address of a sampler and its operands. Addresses are plain integers, floats are the bits of an f64.
Kernels import this file, so it imports nothing.
"""

# ---------------------------------------------------------------- the run block
(
    N_VOCAB,  # tokens of the vocabulary
    LOGITS,  # f32[n_vocab], the model's row, never written
    STEPS,  # int64[n_steps, STEP_WORDS]
    N_STEPS,
    BUFFERS,  # int64[4]: where IDS, VALUES, PROBS and KEYS begin
    FRONT,  # scratch of 8 bytes per candidate
    BACK,  # scratch of 8 bytes per candidate
    MARKS,  # int32[n_vocab], all zero between samplers
    RECENT,  # address just behind the newest accepted token (int32, oldest first)
    N_RECENT,
    # the candidates while the run goes on
    IDS,  # int32[size], valid unless IN_ID_ORDER
    VALUES,  # f32[size] logits
    PROBS,  # f32[size]
    KEYS,  # f32[size] that order the array: VALUES, or a sampler's own
    SIZE,
    IN_ID_ORDER,  # candidate i is token i, IDS is not written yet
    IS_SORTED,  # by KEYS, descending …
    N_SORTED,  # … and so far this many are really in place, the rest follow in any order
    HAS_PROBS,  # PROBS belong to this row
    # results
    SELECTED,  # index into the candidates, -1 = none
    TOKEN,
    STATUS,
    RUN_WORDS,
) = range(23)

# How a run ended.
OK, NOT_FINITE, NOTHING_ALLOWED = range(3)

# ---------------------------------------------------------------- the steps
OP, A, B, C, D, E, F, G = range(8)
STEP_WORDS = 8

# Operands of each sampler:
#   logit_bias           A: int32 ids, B: f32 biases, C: how many
#   penalties            A: last_n, B: repeat, C: frequency, D: presence
#   dry                  A: last_n, B: allowed, C: multiplier, D: base, E: largest exponent,
#                        F: breakers block
#   top_n_sigma          A: n
#   top_k                A: k
#   typical, top_p       A: p, B: min_keep
#   min_p                A: ln p, B: min_keep
#   xtc                  A: probability, B: threshold, C: min_keep, D: generator
#   temperature          A: t
#   dynamic_temperature  A: lowest, B: highest, C: exponent
#   infill               A: int32 end tokens, B: how many, C: fallback or -1, D: text bytes,
#                        E: int64 starts of the texts
#   dist                 A: generator
#   mirostat             A: tau, B: eta, C: m, D: generator, E: state
#   mirostat_v2          A: tau, B: eta, D: generator, E: state
#   adaptive_p           A: target, D: generator, E: state
#   log_sum              E: state

# A breakers block (DRY): heads sorted, each with its tails, all tails in one list of tokens.
N_HEADS, HEADS, TAILS_OF_HEAD, TAIL_STARTS, TAIL_TOKENS, BREAKER_WORDS = range(6)

# The state of the selectors: f64[STATE_WORDS].
MU, WEIGHTED, TOTAL, PICKED_P, LOG_SUM_EXP, STATE_WORDS = range(6)

# A generator (MT19937): uint32[GENERATOR_WORDS], 624 of state and the place in it.
GENERATOR_WORDS = 625

# Every candidate array has this many elements of room behind its capacity for whole vectors.
MARGIN = 64
