"""The height tree against plain sums."""

import random

from app.ui.widgets.heights import HeightTree


def test_it_agrees_with_plain_sums():
    rng = random.Random(7)
    heights = [rng.randrange(1, 300) for _ in range(257)]
    tree = HeightTree(heights)
    for _ in range(300):
        if rng.random() < 0.2:
            heights.append(rng.randrange(1, 300))
            tree.append(heights[-1])
        place = rng.randrange(len(heights))
        heights[place] = tree[place] + rng.randrange(0, 50)
        tree[place] = heights[place]
        at = rng.randrange(len(heights) + 1)
        assert tree.start(at) == sum(heights[:at])
        y = rng.randrange(sum(heights))
        found = tree.find(y)
        assert sum(heights[:found]) <= y < sum(heights[: found + 1])
    assert tree.total() == sum(heights) and len(tree) == len(heights)


def test_the_ends():
    assert HeightTree().total() == 0 and HeightTree().find(10) == 0
    assert HeightTree([5]).find(99) == 0
