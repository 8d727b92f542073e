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


def best_path(text, scores, unknown_score):
    """Return the tokens of the path with the highest sum; scores: token -> score, None unknown."""
    best = {0: (0.0, None, None)}
    for at in range(len(text)):
        steps = [(token, scores[token]) for token in scores if text.startswith(token, at)]
        if not any(len(token) == 1 for token, _ in steps):
            steps.append((None, unknown_score))
        for token, score in sorted(steps, key=lambda step: len(step[0] or "x")):
            end, total = at + len(token or "x"), best[at][0] + score
            if end not in best or total > best[end][0]:
                best[end] = (total, at, token)
    path, at = [], len(text)
    while at > 0:
        _, begin, token = best[at]
        if token is not None or not path or path[-1] is not None:
            path.append(token)
        at = begin
    return path[::-1]
