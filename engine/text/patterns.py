"""PATTERNS: the rules of every pre-tokenizer type, in the order in which they are applied.

Each rule cuts every piece that the rules before it left into its matches and the gaps between
them. A rule is a pattern of the `regex` package or the name of a digit rule of `pretokenize`.
The reference's engine shows in them: beyond ASCII it does not tell cases apart, so that every
letter counts as upper and as lower case, and no range of characters matches white space.
"""

# Contractions in any case, and the usual three ways to cut white space.
_C = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"\s+(?!\S)|\s+"
_LINES = r"\s*[\r\n]+|" + _SPACES
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_PUNCTUATION = r" ?[\p{P}\p{S}]+[\r\n]*"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_NOT_WORDS = rf"{_SYMBOLS}|{_LINES}"
_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
_LLAMA3 = rf"{_C}|{_LETTERS}|\p{{N}}{{1,3}}|{_NOT_WORDS}"
_QWEN2 = rf"{_C}|{_LETTERS}|\p{{N}}|{_NOT_WORDS}"
# ASCII punctuation with the ASCII letters behind it, else letters and marks.
_MARKED_WORDS = (
    r"[!\x22#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
)
_MARKED = rf"{_MARKED_WORDS}|{_PUNCTUATION}|{_LINES}"
_CJK = r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_OLD_CJK = r"(?:(?!\s)[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff])+"
_SENTENCE = r" ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"


def _cased(upper: str, lower: str, contraction: str, digits: str) -> str:
    """Return the rule that cuts letters where a lower one is followed by an upper one."""
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{lead}{upper}*{lower}+{contraction}|{lead}{upper}+{lower}*{contraction}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}"
    )


_UPPER, _LOWER = r"[^\P{L}a-z]", r"[^\P{L}A-Z]"
_MARKED_UPPER, _MARKED_LOWER = r"(?:(?![a-z])[\p{L}\p{M}])", r"(?:(?![A-Z])[\p{L}\p{M}])"
_GPT4O = _cased(_UPPER, _LOWER, _C + "?", r"\p{N}{1,3}")
# Types that tell cases apart only by Unicode category, which the reference does not do.
_ANY_CASE = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+{_C}?|%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}"
)
_HAN = (
    r"\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b820-\U0002ceaf\U0002ceb0-\U0002ebef\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_KIMI = (
    rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?(?:(?![{_HAN}])\p{{L}})+{_C}?|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_LINES}"
)
_CASED_LETTERS = (
    r"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    r"\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    r"\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    r"\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    r"\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    r"\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    r"\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    r"\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    r"\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    r"\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    r"\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    r"\U0001e900-\U0001e943"
)
_AFMOE_SCRIPTS = (
    r"[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f"
    r"\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f"
    r"\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
)
_YOUTU_SCRIPTS = (
    r"[\uac00-\ud7a3\u3131-\u318e]+"
    r"|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
    r"|[\u3105-\u312f]+|" + _CJK
)
# A run of 2**k spaces is one word where another follows it, the longest first.
_JAIS2_SPACES = "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))

_DEEPSEEK3 = (r"\p{N}{1,3}", _CJK, _MARKED)
_LINEWISE = (r"[^\n]+|[\n]+",)
_SINGLE_DIGITS = (r"\p{N}", _GPT2)

PATTERNS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    "afmoe": ("threes_after_text", _AFMOE_SCRIPTS, _MARKED),
    "bailingmoe": (
        r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"
        rf"|{_LETTERS}|\p{{N}}|{_SYMBOLS}|\s*[\r\n]|{_SPACES}",
    ),
    "bloom": (_SENTENCE,),
    "chameleon": (
        r"<sentinel:[0-9]+>",
        r"IMGIMG[A-I]{1,4}Z",
        r"[\t\n]|    |  ",
        r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]",
        _GPT2,
    ),
    "chatglm4": (_LLAMA3,),
    "codeshell": _SINGLE_DIGITS,
    "command_r": _SINGLE_DIGITS,
    "dbrx": (_LLAMA3,),
    "deepseek3_llm": _DEEPSEEK3,
    "deepseek_coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _OLD_CJK, r"\p{N}"),
    "deepseek_llm": (
        r"[\r\n]",
        rf"\s?[{_CASED_LETTERS}]+",
        r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001-\u3002]+",
        r"(?<!\s)\s++\Z",  # \s+$, without a new try at every space of a run
        _OLD_CJK,
        r"\p{N}+",
    ),
    "exaone": _SINGLE_DIGITS,
    "exaone_moe": (
        rf"{_C}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|{_SPACES}",
    ),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]"),
    "gemma4": _LINEWISE,
    "gpt2": (_GPT2,),
    "gpt3_finnish": (_SENTENCE,),
    "gpt4o": (_GPT4O,),
    "granite_docling": (_GPT2,),
    "granite_emb_multi": (_cased(_MARKED_UPPER, _MARKED_LOWER, _C + "?", r"\p{N}{1,3}"),),
    "grok_2": (_QWEN2,),
    "hunyuan": (_QWEN2,),
    "hunyuan_dense": _DEEPSEEK3,
    "hy_v4": _DEEPSEEK3,
    "jais": (_GPT2,),
    "jais2": (
        rf"{_C}|{_LETTERS}|\p{{N}}{{1,3}}|{_SYMBOLS}|\s*[\r\n]+|{_JAIS2_SPACES}"
        r"|\s{1,2}(?!\S)|\s",
    ),
    "joyai_llm": _DEEPSEEK3,
    "kimi_k2": (_KIMI,),
    "laguna": (*_LINEWISE, _QWEN2),
    "llama3": (_LLAMA3,),
    "mellum2": _SINGLE_DIGITS,
    "minerva": _SINGLE_DIGITS,
    "minicpm5": (r"\p{N}{1,3}", rf"{_C}|{_LETTERS}|\p{{N}}+|{_NOT_WORDS}"),
    "minimax_m2": (_GPT4O,),
    "mpt": (_GPT2,),
    "olmo": (_GPT2,),
    "poro": (_SENTENCE,),
    "qwen2": (_QWEN2,),
    "qwen35": (
        rf"{_C}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}",
    ),
    "refact": _SINGLE_DIGITS,
    "sarvam_moe": _LINEWISE,
    "seed_coder": (rf"{_C}|{_LETTERS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_LINES}",),
    "smaug": (_LLAMA3,),
    "smollm": _SINGLE_DIGITS,
    "solar_open": (_QWEN2,),
    "spark2_5": (
        r"\p{N}{1,3}",
        _CJK,
        rf"{_MARKED_WORDS}| ?[\p{{P}}\p{{S}}]+|[\r\n]|{_SPACES}",
        r"\p{N}",
    ),
    "stablelm2": (_QWEN2,),
    "starcoder": _SINGLE_DIGITS,
    "superbpe": (r"\p{N}+", "threes_from_the_right"),
    "tekken": (_cased(_UPPER, _LOWER, "", r"\p{N}"),),
    "tiny_aya": ("threes_after_text", _ANY_CASE % r"\p{N}{1,3}"),
    "trillion": (_GPT2,),
    "ufakzeka": (rf"{_LETTERS}|\p{{N}}|{_NOT_WORDS}",),
    "viking": (_SENTENCE, r"\p{N}"),
    "whitespace": (r"\S+",),
    "youtu": (_YOUTU_SCRIPTS, _ANY_CASE % r"\p{N}"),
}
