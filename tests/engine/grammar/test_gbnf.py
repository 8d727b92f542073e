"""GBNF: what is read, what is refused with its place, and what the grammars then match."""

import pytest

from engine.errors import GrammarError
from engine.grammar import Constraint, TokenTable
from engine.grammar.gbnf import read_gbnf
from engine.grammar.lexemes import to_lark
from tests.make.small_vocab import SmallVocab

SPECIAL = [f"<t{i}>".encode() for i in range(30)]
VOCAB = SmallVocab(SPECIAL)
TABLE = TokenTable.of(VOCAB)
T = 257  # id of <t0>

EXPRESSION = r"""
root ::= expression
expression ::= term ws (("+"|"-") ws term)*
term ::= factor ws (("*"|"/") ws factor)*
factor ::= number | variable | "(" expression ")" | function-call
number ::= [0-9]+
variable ::= [a-zA-Z_][a-zA-Z0-9_]*
function-call ::= variable ws "(" (expression ("," ws expression)*)? ")"
ws ::= [ \t\n\r]?
"""
SUM = """root ::= expr
expr ::= term ("+" term)*
term ::= number
number ::= [0-9]+"""
JSON = r"""
root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
WORDS = """root ::= cons+ vowel* cons? (vowel cons)*
vowel ::= [aeiouy]
cons ::= [bcdfghjklmnpqrstvwxyz]"""

MATCHES = [
    (SUM, ["42", "1+2+3+4+5", "123+456"], ["+", "/ 3", "1+2+3+4+5+", "12a45"]),
    (
        EXPRESSION,
        ["42", "1*2*3*4*5", "x", "x+10", "x1+y2", "(a+b)*(c-d)", "func()", "func(x,y+2)"]
        + ["func(x, y + 2)", "a*(b+c)-d/e", "f(g(x),h(y,z))", "f(g(x), h(y, z))", "x + 10"]
        + ["x1+y2-z3*w4/v5+u6", "(((x)))", "func(x, (y + 2) * 3)"],
        ["+", "/ 3x", "x + + y", "a * / b", "func(,)", "func(x y)", "(a + b", "x + y)", "a +"]
        + ["(a + b) * (c - d) * (e + f", "func(x, y,)", "123 456"],
    ),
    (
        'root ::= ... "abc" ...',
        ["abcabcabc", "aaaabcccc", "🔵🟠✅abc❌🟠🔵", "\n\n\nabc   "],
        ["aaabcccc", "aaaaabcccc", "aaaabccc", "aaaabccccc", "🔵🟠✅❌abc❌✅🟠🔵", "🔵🟠abc🟠🔵"],
    ),
    ('root ::= "a"*', ["", "a", "aaaaa", "a" * 41], ["b", "ab", "ba"]),
    ('root ::= "a"+', ["a", "aaaaa"], ["", "b", "ab"]),
    ('root ::= "a"?', ["", "a"], ["b", "ab", "aa", "ba"]),
    (
        WORDS,
        ["yes", "no", "noyes", "crwth", "four", "bryyyy"],
        ["yess", "yesno", "forty", "catyyy"],
    ),
    ("root ::= [ab]{4}", ["aaaa", "bbbb", "abab"], ["a", "b", "aaaaa"]),
    ("root ::= [ab]{4,}", ["aaaa", "aaaaab", "bbbb", "ababab"], ["a", "b", "aba"]),
    ('root ::= "a"{0} "b"', ["b"], ["ab"]),
    ("root ::= [ab]{0,4}", ["", "aa", "aaaa", "abab"], ["aaaaa"]),
    (
        'root ::= ("0x" [A-F0-9]{2} " "?){3,5}',
        ["0xFF 0x12 0xAB", "0xFF 0x12 0xAB 0x00 0x00"],
        ["", "0xFF", "0xFF 0x12", "0xFF 0x12 0xAB 0x00 0x00 0x00"],
    ),
    ("root ::= ( [x]* )*", ["", "x", "xx"], ["y", "yy"]),
    (
        JSON,
        ['{"a": [1, 2.5e3, "x\\n", null], "b": {"c": false}}', "{}", '{"ä":"\\u00e4"}'],
        ['{"a": 01}', "[1]", '{"a" 1}', '{"a": tru}', '{"a": "b'],
    ),
    ('root ::= [^x-] "-" [a\\-z]', ["a-a", "b--", "🙂-z"], ["x-a", "--a", "a-b"]),
    ('root ::= "\\x41\\u00e9\\U0001F642\\t\\\\\\"\\[\\]"', ['Aé🙂\t\\"[]'], ["Aé"]),
    ('root ::= [] "a" "" | ""', ["a", ""], ["b"]),
    ('root ::= "x" (\n "a" |\n "b" # why\n) |\n "c"\r\n\r# end', ["xa", "xb", "c"], ["x"]),
    ('root ::= a\na ::= "1"\na ::= "2"', ["2"], ["1"]),
    ('root ::= "(" root ")" | ""', ["", "((()))"], ["(()", ")"]),
    ('root ::= "a" root | "b"', ["b", "aaab"], ["a", "aba"]),
    ("root ::= [ab]{ 2 ,\n 3 }", ["ab", "aba"], ["a", "abab"]),  # blanks inside the braces
    ('root ::= "a"{0,5000} "b"', ["b", "a" * 2500 + "b"], ["a"]),
    ('root ::= (a "c"){2} a?\na ::= "x" | "yz"', ["xcyzc", "xcxcx"], ["xc", "xcxcxx"]),
    ('root ::= "ab"{2} "cd"?', ["abab", "ababcd"], ["abb", "ababc"]),  # all of a text is repeated
    ('root ::= "a"\runused ::= other\rother ::= [^"] # CR alone', ["a"], ["", "aa"]),
    ("root ::= .", ["a", "\n", "🙂", "\u2028"], ["", "ab", "\n\n"]),
    ("root ::= [^\\n\\r]", ["a", " "], ["\n", "\r"]),
    ('root ::= "\\r\\n" [\\\\\\"]', ["\r\n\\", '\r\n"'], ["\n"]),
    ("root ::= [^a-cé🙂-🙄]", ["d", "è", "🙅"], ["a", "c", "é", "🙂", "🙃"]),
    ("root ::= [a-]", ["a", "-"], ["b"]),
    ("root ::= [-a]", ["a", "-"], ["b"]),
    ("root ::= ( ( ( ) ) | ) [x]", ["x"], ["", "xx"]),
    ('root ::= a | \n "b" | # more\n "c"\na ::= \n "d"', ["b", "c", "d"], ["a"]),
    ('root ::= ([x]? [y]*){0,3} "z"', ["z", "xyyz", "xxxz", "yxz"], ["xxxxz", "x"]),
]


def accepts(lark, text):
    matcher = Constraint("gbnf", lark).begin(TABLE)
    for byte in text.encode():
        if not matcher.accepts(byte):
            return False
        matcher.accept(byte)
    return matcher.may_end


@pytest.mark.parametrize("whole", [True, False], ids=["joined", "by code point"])
@pytest.mark.parametrize("grammar, good, bad", MATCHES)
def test_matches(grammar, good, bad, whole):
    lark = to_lark(read_gbnf(grammar), whole=whole)
    assert [text for text in good if not accepts(lark, text)] == []
    assert [text for text in bad if accepts(lark, text)] == []


def test_a_string_of_json_is_read_as_one_terminal():
    """Otherwise each mask walks all tokens character by character."""
    assert r"T0: /[\x{22}](?:" in to_lark(read_gbnf(JSON))


def test_parts_that_longest_match_would_get_wrong_stay_single():
    grammar = 'root ::= word rest\nword ::= [a-z]+\nrest ::= "b" rest "c" | "."'
    lark = to_lark(read_gbnf(grammar))
    assert accepts(lark, "ab.c") and accepts(lark, "abbb.cc") and not accepts(lark, "b.c")
    assert "(/[a-z]/)+" in lark


@pytest.mark.parametrize(
    "tail", ["{,}", "{,10}", "{5000}", "{5000,}", "{5000,6000}", "{3,2}", "{3", "{3;}"]
)
def test_bad_repetitions(tail):
    with pytest.raises(GrammarError, match="line 1, column"):
        read_gbnf(f'root ::= "a"{tail}')


def test_repetitions_may_not_multiply():
    with pytest.raises(GrammarError, match="2000"):
        read_gbnf("root ::= (((((([^x]*){0,99}){0,99}){0,99}){0,99}){0,99}){0,99}")


def test_a_large_upper_bound_is_no_bound():
    lark = to_lark(read_gbnf('root ::= "a"{3,5000}'))
    assert accepts(lark, "a" * 6000)
    assert not accepts(lark, "aa")


@pytest.mark.parametrize(
    "grammar, message",
    [
        ("root ::= word\n  word := 1", "line 2, column 8"),
        ('root ::= "a\\q"', "unknown escape “.q”.*line 1, column 12"),
        ('root ::= ("a"', "never closed.*line 1, column 10"),
        ('root ::= "a', "never closed"),
        ("root ::= [a", "never closed"),
        ("root ::= *", "nothing before it"),
        ('root ::= ""+', "nothing before it"),
        ("root ::= a_b", "unexpected"),
        ('root ::= "a" )', "unexpected"),
        ("root ::= \\", "unexpected"),
        ('root ::= "\\x4"', "2 hexadecimal digits"),
        ("root ::= [z-a]", "ends before"),
        ("root ::= expr\nexpt ::= [0-9]", "“expr”, which is not defined. Did you mean “expt”"),
        ('rot ::= "a"', "no rule “root”"),
        ("", "no rule “root”"),
        ('root ::= "a" | root "a"', "left recursion"),
        ('root ::= a\na ::= "x" | root "y"', "left recursion"),
        ('root ::= a\na ::= b\nb ::= root "y" | "z"', "left recursion"),
        ('root ::= e root "y" | "z"\ne ::= "q"?', "left recursion"),
        ("root ::= <think>", "no vocabulary"),
        ('root ::= "a"\n| "b"', "line 2, column 1"),  # outside groups a line ends the rule
        ('root ::= "\\u00e"', "4 hexadecimal digits"),
        ('root ::= "\\U0001F64"', "8 hexadecimal digits"),
        ("root ::= [\\q]", "unknown escape"),
        ("root ::= <[a]>", "token id"),
        ("root ::= !a", "needs a token"),
        ("root ::= ()*+{2}|*", "nothing before it"),
        ('root = "a"', "“::=”"),
        ("root ::= a-b\na_b ::= [c]", "line 2"),
    ],
)
def test_refusals_say_where_and_why(grammar, message):
    with pytest.raises(GrammarError, match=message):
        Constraint.from_gbnf(grammar)


def run(grammar, *steps):
    matcher = Constraint.from_gbnf(grammar).begin(TABLE)
    for step in steps:
        for token in [step] if isinstance(step, int) else list(step.encode()):
            if not matcher.accepts(token):
                return False
            matcher.accept(token)
    return matcher.may_end


def test_token_terminals():
    grammar = f"root ::= <[{T + 10}]> content <[{T + 11}]>\ncontent ::= (!<[{T + 11}]>)*"
    assert run(grammar, T + 10, "hello", T + 11)
    assert run(grammar, T + 10, T + 11)
    assert run(grammar, T + 10, T + 12, T + 13, T + 14, T + 15, T + 11)
    assert not run(grammar, T + 10, "hello")
    assert not run(grammar, "hello", T + 11)
    assert not run(grammar, T + 10, T + 11, T + 11)
    assert not run(grammar, T + 11, "hello", T + 10)


def test_token_terminals_in_turn():
    grammar = f"""root ::= reasoning+ content tool-call*
reasoning ::= <[{T + 10}]> (!<[{T + 11}]>)* <[{T + 11}]>
content ::= <[{T + 20}]> (!<[{T + 21}]>)* <[{T + 21}]>
tool-call ::= <[{T + 12}]> name <[{T + 13}]> args <[{T + 14}]>
name ::= (!<[{T + 13}]>)+
args ::= (!<[{T + 14}]>)*"""
    think = (T + 10, "why", T + 11)
    content = (T + 20, "so", T + 21)
    assert run(grammar, *think, *content)
    assert run(grammar, *think, *think, *content)
    assert run(grammar, T + 10, T + 20, T + 12, T + 11, *content)
    assert run(grammar, *think, *content, T + 12, "f", T + 13, T + 14, T + 12, "g", T + 13, T + 14)
    assert not run(grammar, *content)
    assert not run(grammar, T + 10, "why", *content)
    assert not run(grammar, *think, T + 11, *content)
    assert not run(grammar, *think, *content, T + 12, T + 13, T + 14)


def test_tokens_by_text():
    def tokenize(text):
        return [VOCAB.id_of(text.encode())] if text.encode() in SPECIAL else list(text.encode())

    constraint = Constraint.from_gbnf('root ::= <t5> !<t6> "x"', tokenize)
    matcher = constraint.begin(TABLE)
    assert matcher.accepts(T + 5) and not matcher.accepts(T + 6)
    matcher.accept(T + 5)
    assert matcher.accepts(T + 7) and matcher.accepts(ord("a")) and not matcher.accepts(T + 6)
    with pytest.raises(GrammarError, match="not one token"):
        Constraint.from_gbnf("root ::= <nothing>", tokenize)


def test_token_beyond_the_vocabulary():
    with pytest.raises(GrammarError, match="names the token 90000"):
        Constraint.from_gbnf("root ::= <[90000]>").begin(TABLE)
