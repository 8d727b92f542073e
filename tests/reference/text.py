"""Merges as the definition reads: look at every pair, take the best, begin again."""


def merge_by_rank(text, ranks):
    """Return the symbols of `text` after all merges; ranks: (left, right) -> rank, lower first."""
    symbols = list(text)
    while True:
        ranked = [
            (ranks[pair], i)
            for i, pair in enumerate(zip(symbols, symbols[1:], strict=False))
            if pair in ranks
        ]
        if not ranked:
            return symbols
        _, i = min(ranked)
        symbols[i : i + 2] = ["".join(symbols[i : i + 2])]


def merge_by_score(text, scores):
    """Return the symbols of `text` after all joins into a token; higher scores first."""
    symbols = list(text)
    while True:
        joined = [
            (-scores[left + right], i)
            for i, (left, right) in enumerate(zip(symbols, symbols[1:], strict=False))
            if left + right in scores
        ]
        if not joined:
            return symbols
        _, i = min(joined)
        symbols[i : i + 2] = ["".join(symbols[i : i + 2])]
