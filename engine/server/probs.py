"""Probabilities of a sampled token and its rivals as events carry them."""

from engine.server.events import TokenProb
from engine.server.loaded import Loaded, Row
from engine.server.slot import Slot


def token_probs(slot: Slot, token: int, row: Row, loaded: Loaded) -> tuple[TokenProb, ...]:
    """Return the token with its `n_probs` likeliest rivals, or nothing if not asked for.

    Before the chain: softmax over the raw logits. After it: the candidates that the chain left.
    """
    n_probs = slot.request.n_probs
    if n_probs <= 0 or slot.sampler is None:
        return ()
    if slot.request.post_sampling_probs:
        ranking = loaded.rank_after(slot.sampler, token, n_probs)
    else:
        ranking = loaded.rank_row(row, token, n_probs)
    pairs = zip(ranking.ids.tolist(), ranking.logprobs.tolist(), strict=True)
    piece, ends = loaded.vocab.piece, loaded.vocab.eog_ids
    stages = tuple(slot.sampler.stages) if slot.request.trace else ()
    forbids = slot.sampler.forbids if stages else lambda _: False
    top = tuple(
        TokenProb(rival, piece(rival, special=True), ln_p, (), (), rival in ends, forbids(rival))
        for rival, ln_p in pairs
    )
    own = piece(token, special=True)
    return (TokenProb(token, own, float(ranking.logprob), top, stages, token in ends),)
