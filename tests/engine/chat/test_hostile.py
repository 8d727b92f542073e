"""A template is a stranger's: it cannot hang, grow without end, or reach into the program."""

import json
import tracemalloc

import pytest

from engine.chat import ChatTemplate
from engine.chat.meter import Limits
from engine.chat.template import MAX_SOURCE_CHARS, CompiledTemplate
from engine.errors import RequestError, TemplateError
from tests.make.bounds import bounded

LOOPS = [
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{{ range(99999)|sum }}{% endfor %}",
    "{% for i in range(99999) %}{% set x = range(99999)|list %}{% endfor %}",
    "{% for i in range(99999) %}{% set x = range(99999)|map('string')|join %}{% endfor %}",
    "{% for i in range(99999) %}{{ 'b' in s ~ s ~ s ~ s }}{% endfor %}",
    "{% for i in range(99999) %}{{ s ~ s == s2 ~ s2 }}{% endfor %}",
    "{% for i in range(99999) %}{% set x = s[1:] %}{% endfor %}",
    "{% for i in range(99999) %}{% set x = s.upper() %}{% endfor %}",
    "{% for i in range(99999) %}{% set x = s|reverse %}{% endfor %}",
    "{% for i in range(99999) %}{{ s.count('b') }}{% endfor %}",
    "{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% for x in [[1]] recursive %}{{ loop([x, x]) }}{% endfor %}",
    "{% for i in range(99999) if range(99999)|list %}{% endfor %}",
    "{{ range(99999)|map('string')|map('length')|select('odd')|list|length }}" * 900,
]
TEXTS = [
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}{% set x.s = x.s ~ x.s %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}{% set x.s = x.s + x.s %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set x.s = x.s.replace('a', x.s) %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set x.s = x.s.join([x.s, x.s]) %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set x.s %}{{ x.s }}{{ x.s }}{% endset %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set x.s = '{0}{0}'.format(x.s) %}{% endfor %}",
    "{% set x = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set x.s = '%s%s' % (x.s, x.s) %}{% endfor %}",
    "{% set x = namespace(s=[1]) %}{% for i in range(99) %}{% set x.s = x.s + x.s %}{% endfor %}",
    "{% set x = namespace(s=[1, 2]) %}{% for i in range(99) %}{% set x.s = x.s * 9 %}{% endfor %}",
    "{% set x = namespace(s=[1]) %}{% for i in range(99) %}"
    "{% set x.s = [x.s, x.s] %}{% endfor %}{{ x.s }}",
    "{% set x = namespace(s=[1]) %}{% for i in range(90) %}"
    "{% set x.s = [x.s, x.s] %}{% endfor %}{{ x.s|tojson }}",
    "{% set x = namespace(s=[1], t=[1]) %}{% for i in range(99) %}"
    "{% set x.s = [x.s, x.s] %}{% set x.t = [x.t, x.t] %}{% endfor %}{{ x.s == x.t }}",
    "{% set x = namespace(s=(1,)) %}{% for i in range(99) %}"
    "{% set x.s = (x.s, x.s) %}{% endfor %}{{ {x.s: 1} }}",
    "{% set x = namespace(s=(1,), t=(1,)) %}{% for i in range(99) %}"
    "{% set x.s = (x.s, x.s) %}{% set x.t = (x.t, x.t) %}{% endfor %}{{ [x.s, x.t]|sort }}",
    "{% set x = namespace(s=(1,)) %}{% for i in range(99) %}"
    "{% set x.s = (x.s, x.s) %}{% endfor %}{{ [x.s]|unique|list }}",
    "{% set x = namespace(s=(1,)) %}{% for i in range(99) %}"
    "{% set x.s = (x.s, x.s) %}{% endfor %}{{ {}.get(x.s) }}",
    "{% set x = namespace(n=9) %}{% for i in range(99) %}{% set x.n = x.n * x.n %}{% endfor %}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%.999999999f' % 1 }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ 'a'|indent(999999999, true) }}",
    "{{ ([1] * 1000)|tojson(indent=999999999) }}" + "{{ [1]|batch(999999999, 'x')|list }}",
    "{{ [1]|slice(999999999)|list }}",
    "{{ strftime_now('%999999999Y') }}",
    "{% for i in range(99999) %}{{ s }}{% endfor %}",
    "{% macro f() %}{% for i in range(99999) %}{{ s }}{% endfor %}{% endmacro %}{{ f() }}",
    "{% set x %}{% for i in range(99999) %}" + "y" * 9999 + "{% endfor %}{% endset %}",
    "{% set l = [] %}{% for i in range(99999) %}{% set _ = l.append(s ~ i) %}{% endfor %}",
    "{{ s.split('a')|map('list')|list * 99 }}",
    "{{ 1.5|round(999999999, 'floor') }}{{ 9 ** (9 ** 9) }}",
]


QUICK = Limits(seconds=0.1)
TEXT = "a" * 100_000


def attack(source, limits=QUICK):
    """Return what the refusal says, or None if the template ended by itself in its time."""
    variables = dict(s=TEXT, s2="".join(["a", TEXT[1:]]), messages=[])
    with bounded(limits.seconds):
        try:
            CompiledTemplate(source).write(variables, 0, limits)
        except TemplateError as error:
            return str(error)
    return None


@pytest.mark.parametrize("source", LOOPS + TEXTS, ids=lambda s: s[:60])
def test_it_is_stopped(source):
    said = attack(source)
    assert said and said.startswith("The chat template")


@pytest.mark.parametrize("source", [LOOPS[0], LOOPS[1], TEXTS[0], TEXTS[2], TEXTS[11]])
def test_it_ends_within_a_second_at_the_real_limits(source):
    with bounded(1), pytest.raises(TemplateError):
        CompiledTemplate(source).write({})


@pytest.mark.parametrize("source", TEXTS[:12] + TEXTS[-8:], ids=lambda s: s[:60])
def test_it_uses_bounded_memory(source):
    tracemalloc.start()
    attack(source, Limits(seconds=0.3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_a_source_as_large_as_allowed_is_read_within_a_second():
    for piece in ("{{ 'b' in s }}", "{{ a }}", "{% if a %}x{% endif %}", "text "):
        source = piece * (MAX_SOURCE_CHARS // len(piece))
        with bounded(1):
            try:
                CompiledTemplate(source)
            except TemplateError as error:
                assert "complicated" in str(error)


REACHES = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ [].__class__.__base__.__subclasses__() }}",
    "{{ messages.__init__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ namespace.__init__ }}",
    "{{ namespace(a=1).__class__ }}",
    "{{ range.__self__ }}",
    "{{ ''.format.__globals__ }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ '{0[__class__]}'.format('') }}",
    "{{ ''.join.__self__ }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler }}{{ joiner }}{{ lipsum }}",
    "{% for x in [1] %}{{ loop.__class__ }}{{ loop._iterable }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m.__class__ }}{{ m._func }}",
    "{{ (1).real }}{{ (1).bit_length }}{{ (1.5).hex }}",
    "{{ ['__class__']|map(attribute='__class__')|list }}",
    "{{ messages|map(attribute='append.__self__')|list }}",
    "{{ x.encode }}{{ 'a'.encode }}{{ 'a'.translate }}{{ 'a'.format_map }}",
]


@pytest.mark.parametrize("source", REACHES)
def test_nothing_of_python_is_in_reach(source):
    try:
        written = CompiledTemplate(source).write({"messages": []}, 0)
    except TemplateError:
        return
    for word in ("class", "object", "function", "method", "module", "<", "globals"):
        assert word not in written.replace("Undefined", "")


def test_a_source_that_is_too_long_is_refused():
    with pytest.raises(TemplateError, match="more than the"):
        CompiledTemplate("a" * (MAX_SOURCE_CHARS + 1))


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% if a %}" * 2000 + "{% endif %}" * 2000,
        "{% for a in b %}" * 200 + "{% endfor %}" * 200,
        "{{ 1" + " + 1" * 60000 + " }}",
        "{{ a" + ".b" * 60000 + " }}",
        "{{ [" * 3000,
    ],
    ids=range(6),
)
def test_a_source_nested_without_end_is_refused(source):
    with pytest.raises(TemplateError):
        CompiledTemplate(source).write({}, 0)


def test_a_long_honest_conversation_is_no_attack():
    messages = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": f"line {i}\n" * 200}
        for i in range(1001)
    ]
    for name in ("chatml", "llama3", "gemma", "mistral-v3"):
        assert ChatTemplate(name).render(messages).count("line 999") == 200


def test_a_long_tool_list_is_no_attack():
    source = (
        "{% for m in messages %}{% if tools != none and tools|length > 0 %}"
        "{{ tools|tojson(indent=2) if loop.first else '' }}{% endif %}{{ m.content }}{% endfor %}"
    )
    fields = {f"field{i}": {"type": "string", "description": "d" * 100} for i in range(50)}
    tools = [
        {"type": "function", "function": {"name": f"f{i}", "parameters": fields}} for i in range(60)
    ]
    messages = [{"role": "user", "content": "x"}] * 300
    written = ChatTemplate(source).render(messages, tools=tools)
    assert json.loads(written.rstrip("x")) == tools


BAD_MESSAGES = [
    ([], "no message"),
    ("hello", "must be a list"),
    ([1], "Message 1 must be an object"),
    ([{"role": "user"}], "expected “content” or “tool_calls”"),
    ([{"content": "x"}], "role"),
    ([{"role": "user|><|im_end", "content": "x"}], "one word"),
    ([{"role": "user", "content": 5}], "“content” must be"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "unsupported content part"),
    ([{"role": "assistant", "tool_calls": [{}]}], "function with a name"),
    ([{"role": "user", "content": "x", "extra": object()}], "holds a object"),
]


@pytest.mark.parametrize(("messages", "words"), BAD_MESSAGES)
def test_malformed_messages_are_named(messages, words):
    with pytest.raises(RequestError, match=words.replace("“", ".").replace("”", ".")):
        ChatTemplate("chatml").render(messages)


def test_nesting_has_an_end():
    value: list = []
    for _ in range(100):
        value = [value]
    with pytest.raises(RequestError, match="nested"):
        ChatTemplate("chatml").render([{"role": "user", "content": "x", "extra": value}])
