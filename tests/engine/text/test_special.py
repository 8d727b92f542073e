"""Special tokens: found in texts, recognised by their texts, stripped, and left alone."""

import numpy as np
import pytest

from tests.make import vocab as make

CONTROL, USER_DEFINED, NORMAL = make.CONTROL, make.USER_DEFINED, make.NORMAL


def _vocab(further, name=None, **keys):
    metadata = make.byte_pairs(["a b"], further, **keys)
    return make.vocab(metadata | ({"general.name": name} if name else {}))


def _texts(vocab, text, **flags):
    return [vocab.text(token).decode() for token in vocab.tokenize(text, **flags)]


def test_special_tokens_cut_the_text():
    vocab = _vocab({"<x>": CONTROL, "<y>": USER_DEFINED})
    assert _texts(vocab, "ab<x>ab<y><x>") == ["ab", "<x>", "ab", "<y>", "<x>"]
    plain = ["ab", "<", "x", ">", "ab", "<y>", "<", "x", ">"]
    assert _texts(vocab, "ab<x>ab<y><x>", parse_special=False) == plain
    assert _texts(vocab, "") == [] and _texts(vocab, "<x>") == ["<x>"]


def test_a_longer_token_anywhere_goes_before_a_shorter_one():
    vocab = _vocab({"xab": CONTROL, "abcd": CONTROL, "c": CONTROL})
    assert _texts(vocab, "xabcd") == ["x", "abcd"]
    assert _texts(vocab, "xabc") == ["xab", "c"]
    assert _texts(vocab, "cccabcdc") == ["c", "c", "c", "abcd", "c"]


def test_a_token_of_one_byte_is_found_at_the_very_end():
    vocab = _vocab({"é": CONTROL, "<x>": CONTROL})
    assert _texts(vocab, "é<x") == ["é", "<", "x"]
    assert _texts(vocab, "日é")[-1] == "é"


def test_a_special_token_that_ends_generation_is_not_parsed_from_plain_text():
    # Its type is user-defined, its task makes it a control token as well.
    vocab = _vocab({"</s>": USER_DEFINED})
    assert _texts(vocab, "</s>", parse_special=False) == ["<", "/", "s", ">"]
    assert _texts(vocab, "</s>") == ["</s>"]


def test_every_fragment_of_a_sentence_piece_text_gets_its_space():
    vocab = make.vocab(make.sentence_pieces({"▁a": 0.0, "▁": -1.0, "a": -1.0}, {"<x>": CONTROL}))
    assert _texts(vocab, "a<x>a") == ["<s>", "▁a", "<x>", "▁a"]
    assert vocab.detokenize(vocab.tokenize("a a", add_special=False)) == b"a a"
    assert vocab.tokenize("") == [vocab.bos]


def test_phi3_tokens_take_the_space_behind_them():
    vocab = _vocab({"<|user|>": CONTROL, "<s>": CONTROL}, name="Phi-3 mini")
    assert _texts(vocab, "a <|user|> \n\t a<s> a")[:4] == ["a", "Ġ", "<|user|>", "a"]
    assert _texts(vocab, "<s> a") == ["<s>", "Ġ", "a"]


def test_a_mask_takes_the_space_before_it():
    vocab = _vocab({"<mask>": CONTROL}, pre="jina-v2-de")
    assert _texts(vocab, "a \n <mask> a") == ["a", "<mask>", "Ġ", "a"]
    vocab = _vocab({"[MASK]": CONTROL, "<x>": CONTROL}, name="modern-bert-base")
    assert _texts(vocab, "<x>  [MASK]") == ["<x>", "[MASK]"]


def test_tasks_are_recognised_by_text():
    further = dict.fromkeys(("<|im_end|>", "<fim_prefix>", "<SUF>", "<MID>", "<fim_pad>"), NORMAL)
    vocab = _vocab(further)
    ids = vocab.ids
    tasks = (ids.eot, ids.fim_pre, ids.fim_suf, ids.fim_mid, ids.fim_pad)
    assert [vocab.text(token).decode() for token in tasks] == list(further)
    assert vocab.eog_ids >= {ids.eot, ids.fim_pad}
    assert vocab.piece(ids.eot, special=False) == b""


def test_what_the_file_names_goes_before_what_is_recognised():
    vocab = _vocab({"<|im_end|>": NORMAL, "<x>": NORMAL}, eot_token_id=258)
    assert vocab.eot == 258 and vocab.eog_ids == {257, 258, 11}


@pytest.mark.parametrize(
    ("texts", "ends", "does_not"),
    [
        ("<|return|> <|call|> <|end|>", "<|return|> <|call|>", "<|end|>"),
        ("<|calls|> <|flush|> <|end|>", "<|calls|> <|flush|>", "<|end|>"),
        ("<|return|> <|end|>", "<|return|> <|end|>", ""),
        ("<|tool_response> </s>", "<|tool_response>", "</s>"),
        ("</s> <eos> [e~[ <turn|>", "</s> <eos> [e~[ <turn|>", ""),
        ("<|channel|> <|message|>", "", "<|channel|> <|message|>"),
    ],
)
def test_which_tokens_end_generation(texts, ends, does_not):
    vocab = _vocab(dict.fromkeys(texts.split(), CONTROL), eos_token_id=0)
    found = {vocab.text(token).decode() for token in vocab.eog_ids - {0}}
    assert found == set(ends.split())
    for text in does_not.split():
        assert vocab.piece(vocab.find(text), special=False) == text.encode()


def test_end_of_turn_is_chosen_as_the_reference_chooses():
    """Of several candidates the first in its hash map counts; recorded for these two orders."""
    texts = ["<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<EOT>"]
    chosen = []
    for order in (texts, texts[::-1]):
        vocab = _vocab(dict.fromkeys(order, CONTROL))
        chosen.append(vocab.text(vocab.eot).decode())
    assert chosen == ["<EOT>", "<|eot_id|>"]


def test_beginning_and_end_are_added_as_the_file_says():
    further = {"<s>": CONTROL, "</s>": CONTROL}
    keys = {"bos_token_id": 257, "eos_token_id": 258}
    assert _vocab(further, **keys).tokenize("ab") == [256]
    vocab = _vocab(further, add_bos_token=True, add_eos_token=True, **keys)
    assert vocab.tokenize("ab") == [257, 256, 258]
    assert vocab.tokenize("ab", add_special=False) == [256]
    assert _vocab(further, pre="gemma4", add_bos_token=False, **keys).switches.add_bos


def test_suppressed_tokens_are_within_the_vocabulary():
    vocab = _vocab({}, suppress_tokens=np.array([3, -1, 99_999_999, 5], np.int32))
    assert vocab.suppressed == (3, 5)
