"""WordPiece, Unigram, RWKV and white-space vocabularies made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError, RequestError
from engine.text.ugm import CharacterMap
from tests.make import vocab as make
from tests.make.character_map import character_map
from tests.reference.text import best_path

CONTROL, NORMAL, UNKNOWN, USER_DEFINED = (
    make.CONTROL,
    make.NORMAL,
    make.UNKNOWN,
    make.USER_DEFINED,
)


def _texts(vocab, text, **flags):
    return [vocab.text(token).decode() for token in vocab.tokenize(text, **flags)]


def _word_pieces(*pieces, **keys):
    tokens = {"[PAD]": CONTROL, "[UNK]": CONTROL, "[CLS]": CONTROL, "[SEP]": CONTROL}
    ids = {"bos_token_id": 2, "unknown_token_id": 1, "seperator_token_id": 3}
    return make.vocab(make.metadata("bert", tokens | dict.fromkeys(pieces, NORMAL), **ids | keys))


def test_words_are_cut_into_the_longest_pieces():
    vocab = _word_pieces("▁play", "▁pla", "ing", "in", "g", "▁!", "▁a", "▁日")
    assert _texts(vocab, "Playing  PLAY!") == ["[CLS]", "▁play", "ing", "▁play", "▁!", "[SEP]"]
    assert _texts(vocab, "playx ä日\0a\u200d", add_special=False) == ["[UNK]", "▁a", "▁日", "▁a"]
    assert _texts(vocab, "a[SEP]a") == ["[CLS]", "▁a", "[SEP]", "▁a", "[SEP]"]
    assert vocab.tokenize("") == [2, 3]
    assert vocab.detokenize(vocab.tokenize("a playing"), special=False) == b" a playing"


def test_words_keep_case_and_accents_where_the_file_says_so():
    keys = {"normalizer.lowercase": False}
    vocab = _word_pieces("▁A", "▁Ä", "▁ä", **keys)
    assert _texts(vocab, "A Ä", add_special=False) == ["▁A", "▁Ä"]
    vocab = _word_pieces("▁a", "▁ä", **{"normalizer.strip_accents": False})
    assert _texts(vocab, "Ä", add_special=False) == ["▁ä"]


def _unigrams(scored, further=None, **keys):
    tokens = {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN}
    tokens |= dict.fromkeys(scored, NORMAL) | (further or {})
    scores = np.array([scored.get(token, 0.0) for token in tokens], np.float32)
    return make.vocab(make.metadata("t5", tokens, scores=scores, **keys))


@settings(max_examples=60, deadline=None)
@given(
    scored=st.dictionaries(
        st.text("abé", min_size=1, max_size=4), st.integers(-9, -1), max_size=12
    ),
    text=st.text("abéz", max_size=30),
)
def test_the_path_with_the_best_sum_is_taken(scored, text):
    scores = {token: score + 0.01 * i for i, (token, score) in enumerate(scored.items())}
    exact = {token: float(np.float32(score)) for token, score in scores.items()}
    vocab = _unigrams(scores)
    path = best_path(text, exact, min(exact.values(), default=0.0) - 10)
    assert _texts(vocab, text, add_special=False) == [token or "<unk>" for token in path]


def test_user_defined_tokens_cost_nothing_and_stay_as_they_are():
    blob = np.frombuffer(character_map({"A": "a", "B": "b"}), np.uint8)
    vocab = _unigrams({"a": -1.0, "b": -1.0}, {"A!": USER_DEFINED}, precompiled_charsmap=blob)
    assert _texts(vocab, "ABA!b") == ["a", "b", "A!", "b", "</s>"]


def test_a_character_map_replaces_the_longest_match():
    changes = {"ﬁ": "fi", "e\u0301": "é", "e": "e", "㍿": "株式会社", "\t": " ", "\u00ad": ""}
    blob = np.frombuffer(character_map(changes), np.uint8)
    pieces = dict.fromkeys(["fi", "é", "e", "株", "式", "会", "社", "▁"], -1.0)
    vocab = _unigrams(pieces, precompiled_charsmap=blob)
    text = "ﬁe\u0301e\t㍿\u00ad"
    assert _texts(vocab, text, add_special=False) == ["fi", "é", "e", "▁", "株", "式", "会", "社"]


@pytest.mark.parametrize(
    ("prefix", "merge", "expected"),
    [
        (False, False, "▁▁a▁▁▁b▁"),
        (True, False, "▁▁▁a▁▁▁b▁"),
        (False, True, "▁a▁b"),
        (True, True, "▁a▁b"),
    ],
)
def test_spaces_are_settled_before_matching(prefix, merge, expected):
    keys = {"add_space_prefix": prefix, "remove_extra_whitespaces": merge}
    vocab = _unigrams({"a": -1.0, "b": -1.0, "▁": -1.0}, **keys)
    assert "".join(_texts(vocab, "  a   b ", add_special=False)) == expected


@pytest.mark.parametrize("blob", [b"\x08\0\0\0abc", b"\xff\xff\xff\xff", b"\x03\0\0\0abcd"])
def test_a_cut_character_map_is_refused(blob):
    with pytest.raises(ModelFileError, match="character map"):
        CharacterMap(blob)


def test_a_character_map_of_noise_does_no_harm():
    for seed in range(20):
        noise = np.random.default_rng(seed).integers(0, 256, 4 * 300, np.uint8)
        noise[:4] = np.frombuffer((1024).to_bytes(4, "little"), np.uint8)
        vocab = _unigrams({"a": -1.0}, precompiled_charsmap=noise)
        assert vocab.tokenize("abcdé日" * 50)[-1] == 1


def test_a_character_map_that_inflates_is_stopped():
    blob = np.frombuffer(character_map({"a": "b" * 100_000}), np.uint8)
    vocab = _unigrams({"b": -1.0}, precompiled_charsmap=blob)
    with pytest.raises(RequestError, match="inflates"):
        vocab.tokenize("a" * 10_000)


def test_rwkv_takes_the_longest_bytes():
    stored = {"<s>": CONTROL} | dict.fromkeys(
        ("a", "ab", "\\n", "\\x41", "\\xe6\\x97", "\\\\", "abcd", "c"), NORMAL
    )
    vocab = make.vocab(make.metadata("rwkv", stored, unknown_token_id=0))
    assert _texts(vocab, "abcA\n\\") == ["ab", "c", "\\x41", "\\n", "\\\\"]
    assert vocab.tokenize("日a") == [5, 0, 1]
    assert vocab.detokenize([5, 4, 3, 6]) == b"\xe6\x97A\n\\"


def test_the_white_space_family_drops_it():
    metadata = make.byte_pairs(["a b"], pre="whitespace")
    keys = {"tokenizer.ggml.model": "whitespace"}
    vocab = make.vocab(metadata | keys)
    assert _texts(vocab, " ab\n\u3000Ab  a") == ["ab", "A", "b", "a"]
    vocab = make.vocab(metadata | keys | {"tokenizer.ggml.normalizer.lowercase": True})
    assert _texts(vocab, "AB") == ["ab"]


def test_plain_parts_never_make_a_control_token():
    vocab = make.vocab(make.byte_pairs(["a b"], {"<x>": CONTROL, "<y>": USER_DEFINED}))
    x, y = vocab.find("<x>"), vocab.find("<y>")
    template = [("<x>", False), ("a<x>b<y>", True), ("<x>", False)]
    ids = vocab.tokenize_parts(template)
    assert (ids.count(x), ids.count(y), ids[0], ids[-1]) == (2, 1, x, x)
    assert vocab.detokenize(ids) == b"<x>a<x>b<y><x>"
    # Neither does a person's text together with the template's.
    assert x not in vocab.tokenize_parts([("<", False), ("x>", True)])
    assert vocab.tokenize_parts([("a", False), ("b", True)]) == vocab.tokenize("ab")
    assert vocab.tokenize_parts([]) == []


def test_a_plain_part_does_not_hide_a_control_token_behind_it():
    vocab = make.vocab(make.byte_pairs(["a b"], {"b<x>": CONTROL, "<x>": CONTROL}))
    ids = vocab.tokenize_parts([("ab", True), ("<x>", False)])
    assert [vocab.text(token).decode() for token in ids] == ["ab", "<x>"]
