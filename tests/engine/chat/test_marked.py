"""Every operation keeps track of who wrote a character: compared with doing it by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chat import marked
from engine.chat.template import CompiledTemplate

# Message text is written in capitals, the template's in small letters: what comes out shows both.
LETTERS = st.text(alphabet="ab \n,", max_size=12)


def message(text):
    return marked.from_message(text.upper())


def shown(text):
    """Return the characters a message wrote as upper case; fails if origin and case disagree."""
    for part, is_message in marked.parts_of(text):
        letters = [c for c in part if c.isalpha()]
        assert all(c.isupper() == is_message for c in letters), (text, marked.origin_of(text))
    assert len(marked.origin_of(text)) == len(text)
    return marked.plain(text)


mixed = st.lists(st.tuples(LETTERS, st.booleans()), max_size=4).map(
    lambda parts: marked.concat([message(t) if is_message else t for t, is_message in parts])
)
separators = st.sampled_from([",", " ", "A", "a", "\n", ", ", "AB", None])


@given(text=mixed, other=mixed, separator=separators, n=st.integers(-1, 3))
@settings(max_examples=400, deadline=None)
def test_operations_agree_with_str_and_keep_origins(text, other, separator, n):
    raw, more = marked.plain(text), marked.plain(other)
    assert shown(marked.concat([text, other])) == raw + more
    assert shown(marked.strip(text)) == raw.strip()
    assert shown(marked.lstrip(text, "A ")) == raw.lstrip("A ")
    assert shown(marked.rstrip(text, "a\n")) == raw.rstrip("a\n")
    assert [shown(x) for x in marked.split(text, separator, n)] == raw.split(separator, n)
    assert [shown(x) for x in marked.rsplit(text, separator, n)] == raw.rsplit(separator, n)
    assert [shown(x) for x in marked.splitlines(text)] == raw.splitlines()
    assert [shown(x) for x in marked.splitlines(text, True)] == raw.splitlines(True)
    assert shown(marked.repeat(text, max(n, 0))) == raw * max(n, 0)
    if separator:
        assert [shown(x) for x in marked.partition(text, separator)] == list(
            raw.partition(separator)
        )
        assert shown(marked.replace(text, separator, other, n)) == raw.replace(separator, more, n)
    assert shown(marked.join(",", [text, other])) == ",".join([raw, more])
    assert shown(text[1:4]) == raw[1:4] and shown(text[::-1]) == raw[::-1]
    assert "".join(shown(c) for c in text) == raw
    assert shown(marked.format_braces("x{}y{}", (text, other), {})) == f"x{raw}y{more}"
    assert shown(marked.format_percent("x%sy%%", (text,))) == f"x{raw}y%"


def test_indent_is_that_of_the_field():
    text = marked.concat(["a\n", message("b\n\nc")])
    assert marked.plain(marked.indent(text, 2)) == "a\n  B\n\n  C"
    assert shown(marked.indent(text, ">", first=True, blank=True)) == ">a\n>B\n>\n>C"


def origins(source, **variables):
    text = CompiledTemplate(source).write(variables)
    return marked.plain(text), "".join("M" if is_m else "t" for _, is_m in marked.parts_of(text))


TEMPLATES = [
    ("<{{ m }}>", "<MSG>", "tMt"),
    ("<{{ m|trim }}>", "<MSG>", "tMt"),
    ("<{{ m|lower|upper|title }}>", "<Msg>", "tMt"),
    ("{{ '<' + m + '>' }}", "<MSG>", "tMt"),
    ("{{ '<' ~ m ~ 1 }}", "<MSG1", "tMt"),
    ("{{ '<%s>' % m }}", "<MSG>", "tMt"),
    ("{{ '<{}>'.format(m) }}", "<MSG>", "tMt"),
    ("{{ 'a-b'.replace('-', m) }}", "aMSGb", "tMt"),
    ("{{ ['a', m]|join('/') }}", "a/MSG", "tM"),
    ("{{ '/'.join(['a', m]) }}", "a/MSG", "tM"),
    ("{% set x %}<{{ m }}{% endset %}{{ x }}>", "<MSG>", "tMt"),
    ("{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(m) }}{{ f('x') }}", "<MSG><x>", "tMt"),
    ("{% filter trim %} <{{ m }}> {% endfilter %}", "<MSG>", "tMt"),
    ("{% for c in m %}{{ c }}-{% endfor %}", "M-S-G-", "MtMtMt"),
    ("{{ m[0] }}{{ m[-1] }}{{ m|first }}{{ m|list|last }}|", "MGMG|", "Mt"),
    ("{{ m|reverse }}{{ m[::-1] }}|", "GSMGSM|", "Mt"),
    ("{{ {'k': m}|tojson }}|", '{"k": "MSG"}|', "Mt"),
    ("{{ {'k': 'x'}|tojson }}|", '{"k": "x"}|', "t"),
    ("{{ [m] }}|{{ ['x'] }}", "['MSG']|['x']", "Mt"),
    ("{{ {'a': m}.items()|list|first|last }}|", "MSG|", "Mt"),
    ("{{ m|default('x') }}{{ n|default('x') }}", "MSGx", "Mt"),
    ("{{ m|e }}{{ m|safe }}{{ m|string }}|", "MSGMSGMSG|", "Mt"),
    ("{{ (m ~ '\n' ~ m)|indent(2) }}|", "MSG\n  MSG|", "MtMt"),
    ("{{ m * 2 }}|{{ 2 * m }}", "MSGMSG|MSGMSG", "MtM"),
    ("{{ [m, m]|unique|sort|join }}|", "MSG|", "Mt"),
    ("{{ '%s'|format(m) }}|", "MSG|", "Mt"),
    ("{{ m.split('S')[1] }}{{ m.removeprefix('M') }}|", "GSG|", "Mt"),
    ("{{ namespace(x=m).x }}{{ dict(x=m).x }}|", "MSGMSG|", "Mt"),
    ("{% if m == 'MSG' and m in ['MSG'] and m is string %}same{% endif %}", "same", "t"),
]


@pytest.mark.parametrize(("source", "expected", "who"), TEMPLATES)
def test_a_template_keeps_origins(source, expected, who):
    assert origins(source, m=message("msg")) == (expected, who)
