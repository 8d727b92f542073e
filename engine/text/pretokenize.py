"""PRE_TOKENIZERS: pre-tokenizer name to the rules that cut a text into words, and its switches."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import MappingProxyType

import regex

from engine.text.patterns import PATTERNS

Rule = Callable[[str], list[str]]


@dataclass(frozen=True)
class PreTokenizer:
    """How a byte-pair vocabulary wants its text cut, and what follows from its name.

    `patterns` names a row of PATTERNS. `ignore_merges`: a word that is a token is taken whole.
    `byte_level`: words are spelled in the characters of the byte table before they are merged;
    without it, tokens hold UTF-8 as it is. `escape_spaces`: spaces become U+2581 first.
    `has_bos` false: the default id of the first token does not hold.
    """

    patterns: str
    ignore_merges: bool = False
    add_bos: bool = False
    add_sep: bool = False
    clean_spaces: bool = True
    escape_spaces: bool = False
    byte_level: bool = True
    forces_bos: bool = False
    has_bos: bool = True

    def split(self, text: str) -> list[str]:
        """Return the words of `text`; joined they are `text`."""
        return _rules(self.patterns)(text)


_MAX_KNOWN, _MAX_KNOWN_CHARS = 1 << 14, 16
_ANY_DIGITS = regex.compile(r"\p{N}+")
_ASCII_DIGITS = regex.compile(r"[0-9]+")


def _cut_at(text: str, places: Iterable[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise((0, *places, len(text))) if a < b]


def _threes_from_the_right(text: str) -> list[str]:
    """Cut before every group of three that ends where a run of ASCII digits ends."""
    runs = (run.span() for run in _ASCII_DIGITS.finditer(text))
    return _cut_at(text, (at for a, b in runs for at in range(b - (b - a) // 3 * 3, b, 3)))


def _threes_after_text(text: str) -> list[str]:
    """Cut after every group of digits, the same groups; text before a run stays with its first."""
    runs = (run.span() for run in _ANY_DIGITS.finditer(text))
    return _cut_at(text, (at for a, b in runs for at in range(a + ((b - a) % 3 or 3), b + 1, 3)))


_DIGIT_RULES: dict[str, Rule] = {
    "threes_after_text": _threes_after_text,
    "threes_from_the_right": _threes_from_the_right,
}


def _rule(source: str) -> Rule:
    if source in _DIGIT_RULES:
        return _DIGIT_RULES[source]
    split = regex.compile(f"({source})", regex.V0).split
    return lambda text: [piece for piece in split(text) if piece]


def _then(first: Rule, second: Rule) -> Rule:
    """Return the rule that cuts by the first and then, by the second, what that left.

    Short pieces come again and again, so what becomes of them is remembered.
    """
    known: dict[str, list[str]] = {}

    def cut(text: str) -> list[str]:
        words: list[str] = []
        for piece in first(text):
            cut_piece = known.get(piece)
            if cut_piece is None:
                cut_piece = second(piece)
                if len(piece) <= _MAX_KNOWN_CHARS:
                    if len(known) >= _MAX_KNOWN:
                        known.clear()
                    known[piece] = cut_piece
            words += cut_piece
        return words

    return cut


@cache
def _rules(patterns: str) -> Rule:
    """Return all rules of a type as one."""
    *others, rules = (_rule(source) for source in PATTERNS[patterns])
    for rule in reversed(others):
        rules = _then(rule, rules)
    return rules


# One row per set of switches: the names that models give, and the row they all stand for. A name
# without a type is its own type.
_SAME_TYPE_NAMES = (
    "falcon mpt starcoder refact olmo dbrx stablelm2 jais codeshell bloom gpt3-finnish exaone"
    " mellum2"
)
_SAME_TYPE_NAMES_KEEPING_SPACES = (
    "deepseek-llm deepseek-coder spark2_5 command-r smollm viking superbpe trillion"
    " granite-docling seed-coder hunyuan hunyuan-dense hy_v4 joyai-llm kimi-k2 ufakzeka grok-2"
    " afmoe laguna minimax-m2 solar-open"
)
_ROWS: tuple[tuple[str, PreTokenizer], ...] = (
    ("default", PreTokenizer("default")),
    *((name, PreTokenizer(name.replace("-", "_"))) for name in _SAME_TYPE_NAMES.split()),
    *(
        (name, PreTokenizer(name.replace("-", "_"), clean_spaces=False))
        for name in _SAME_TYPE_NAMES_KEEPING_SPACES.split()
    ),
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer("llama3", ignore_merges=True, add_bos=True),
    ),
    ("minicpm5", PreTokenizer("minicpm5", ignore_merges=True)),
    ("deepseek-v3", PreTokenizer("deepseek3_llm", clean_spaces=False)),
    ("youtu", PreTokenizer("youtu", ignore_merges=True, clean_spaces=False)),
    ("minerva-7b", PreTokenizer("minerva")),
    ("jais-2", PreTokenizer("jais2")),
    ("smaug-bpe", PreTokenizer("smaug")),
    ("poro-chat", PreTokenizer("poro", clean_spaces=False)),
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert"
        " exaone4",
        PreTokenizer("gpt2"),
    ),
    ("jina-v1-en jina-v2-code roberta-bpe", PreTokenizer("gpt2", add_sep=True)),
    (
        "gemma4 granite-embed-multi-311m",
        PreTokenizer("gemma4", escape_spaces=True, byte_level=False, forces_bos=True),
    ),
    (
        "sarvam-moe",
        PreTokenizer("sarvam_moe", escape_spaces=True, byte_level=False, clean_spaces=False),
    ),
    ("whitespace", PreTokenizer("whitespace", byte_level=False)),
    ("qwen2 deepseek-r1-qwen kormo f2llmv2", PreTokenizer("qwen2", clean_spaces=False)),
    ("megrez", PreTokenizer("qwen2")),
    ("qwen35", PreTokenizer("qwen35", clean_spaces=False)),
    ("chatglm-bpe", PreTokenizer("chatglm4", has_bos=False)),
    ("glm4 glm5", PreTokenizer("chatglm4", has_bos=False, ignore_merges=True)),
    ("tekken", PreTokenizer("tekken", ignore_merges=True, add_bos=True, clean_spaces=False)),
    ("gpt-4o llama4 kanana2 talkie", PreTokenizer("gpt4o", clean_spaces=False)),
    (
        "granite-embed-multi-97m",
        PreTokenizer("granite_emb_multi", ignore_merges=True, clean_spaces=False),
    ),
    ("tiny_aya cohere2moe", PreTokenizer("tiny_aya", clean_spaces=False)),
    ("chameleon", PreTokenizer("chameleon", add_bos=True, clean_spaces=False)),
    ("exaone-moe", PreTokenizer("exaone_moe")),
    ("bailingmoe bailingmoe2 llada-moe", PreTokenizer("bailingmoe", clean_spaces=False)),
)

PRE_TOKENIZERS = MappingProxyType({name: row for names, row in _ROWS for name in names.split()})
