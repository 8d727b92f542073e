"""The template language: every example of the dialect, and what real templates lean on."""

import json

import pytest

from engine.chat.template import CompiledTemplate
from engine.errors import TemplateError


def write(source, **variables):
    return CompiledTemplate(source).write(variables)


ABC = ["a", "b", "c"]
EXAMPLES = [
    ("    {% if true %}\n    hello\n    {% endif %}\n", {}, "    hello\n"),
    ("{% for i in items %}\n{{ i }}\n{% endfor %}\n", dict(items=[1, 2, 3]), "1\n2\n3\n"),
    ("  {%- if true -%}  \nhello\n  {%- endif -%}  \n", {}, "hello"),
    ("{% for i in items %}{{ i }}{% else %}empty{% endfor %}", {}, "empty"),
    ("{{ 'yes' if not y.x else 'no' }}", dict(y=True), "yes"),
    ("{{ x in {'low': 1} }}", dict(x=None), "False"),
    ("{{ items[-1] }}", dict(items=ABC), "c"),
    ("{{ items[:-n]|string }}", dict(items=ABC, n=1), "['a', 'b']"),
    ("{{ items[::2]|string }}", dict(items=ABC), "['a', 'c']"),
    ("{{ 'abcdef'[::-2] }}", {}, "fdb"),
    ("{{ 'abcdef'[-1:1:-1] }}", {}, "fedc"),
    ("{{ 3 * 'ab' }}", {}, "ababab"),
    ("{{ 'hello' ~ ' ' ~ 'world' }}", {}, "hello world"),
    ("{{ -n is number }}", dict(n=3), "True"),
    ("{{ -n|abs }}", dict(n=3), "3"),
    (
        "{{ obj.keys()|join(',') }} {{ obj['keys'] }}",
        dict(obj={"keys": "value", "test": "v"}),
        "keys,test value",
    ),
    ("{{ {10: 'Bob'}.10 }}", {}, "Bob"),
    ("{{ ''|d('fallback', true) }}", {}, "fallback"),
    ("{{ ''|int(1) }}", {}, "1"),
    ("{{ '11'|int(base=2) }}", {}, "3"),
    ("{{ 'xyxhelloxyx'|trim('xy') }}", {}, "hello"),
    ("{{ s.split(',', 1)|join('-') }}", dict(s="a,b,c"), "a-b,c"),
    ("{{ s.rsplit(',', 1)|join('-') }}", dict(s="a,b,c"), "a,b-c"),
    ("{{ data|tojson }}", dict(data={"a": 1, "b": [1, 2]}), '{"a": 1, "b": [1, 2]}'),
    ("{{ data|tojson(separators=(',',':')) }}", dict(data={"a": 1, "b": [1]}), '{"a":1,"b":[1]}'),
    ("{{ data|tojson }}", dict(data="✓<é>"), '"✓<é>"'),
    ("{{ data|tojson(ensure_ascii=true) }}", dict(data="✓"), '"\\u2713"'),
    ("{{ data|tojson(indent=2) }}", dict(data=[1]), "[\n  1\n]"),
    ("{{ data|indent(2) }}", dict(data="foo\nbar"), "foo\n  bar"),
    ("{{ data|indent(width=3,first=true) }}", dict(data="foo\nbar"), "   foo\n   bar"),
    ("{{ data|indent(width='>>>>') }}", dict(data="foo\nbar"), "foo\n>>>>bar"),
    (
        "{% set ns = namespace(count=0) %}{% for i in range(3) %}"
        "{% set ns.count = ns.count + 1 %}{% endfor %}{{ ns.count }}",
        {},
        "3",
    ),
    (
        "{% macro add(a, b, c=0) %}{{ a + b + c }}{% endmacro %}{{ add(1, 2) }},{{ add(1, b=10) }}",
        {},
        "3,11",
    ),
    ("{{ '{1}-{0}-{1}'.format('a', 'b') }}", {}, "b-a-b"),
    ("{{ '{{}} {}'.format('mid') }}", {}, "{} mid"),
    ("{{ arr.pop(0) }}-{{ arr|join(',') }}", dict(arr=list("abc")), "a-b,c"),
    (
        "{% for k, v in obj|dictsort(by='value') %}{{ k }}={{ v }} {% endfor %}",
        dict(obj={"a": 3, "b": 1, "c": 2}),
        "b=1 c=2 a=3 ",
    ),
    ("{{ arr|length }}{{ arr|list|string }}{{ arr|min }}", {}, "0[]"),
    (
        "{{ items | reject('in', skip) | join(', ') }}",
        dict(items=list("abcd"), skip=["b", "d"]),
        "a, c",
    ),
    # what the field's templates use besides
    ("{{ true }} {{ none }} {{ 1.0 }} {{ 7 // 2 }} {{ 2 ** 3 }}", {}, "True None 1.0 3 8"),
    ("{{ a.b.c.d is defined }}{{ a.b['c'] }}", {}, "False"),
    (
        "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
        "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        {},
        "013",
    ),
    ("{% generation %}x{{ 1 }}{% endgeneration %}y", {}, "x1y"),
    (
        "{% for x in [1,2,3] if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} "
        "{{ loop.previtem }}{{ loop.last }} {% endfor %}",
        {},
        "1/2:2 False 2/2:3 2True ",
    ),
    (
        "{% for n in tree recursive %}{{ n.v }}{{ loop(n.kids) }}{% endfor %}",
        dict(tree=[{"v": 1, "kids": [{"v": 2, "kids": []}]}, {"v": 3, "kids": []}]),
        "123",
    ),
    ("{% set x %}a{{ 1 }}{% endset %}{{ x|upper }}", {}, "A1"),
    ("{% filter upper %}a{{ 'b' }}{% endfilter %}", {}, "AB"),
    ("{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}x{% endcall %}", {}, "[x]"),
    ("{% set a, b = 'x-y'.split('-') %}{{ b ~ a }}", {}, "yx"),
    (
        "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list|last }}",
        dict(messages=[{"role": "user", "content": "q"}, {"role": "tool", "content": "t"}]),
        "q",
    ),
    (
        "{{ ['b', 'a']|sort|first }}{{ [3, 1]|sum }}{{ [1, 2, 3]|batch(2)|list }}",
        {},
        "a4[[1, 2], [3]]",
    ),
    (
        "{{ ' a b '.strip() ~ 'Ab'.lower() ~ 'ab'.title() ~ 'x'.startswith('x') }}",
        {},
        "a babAbTrue",
    ),
    ("{{ 'a-b-c'.replace('-', '+', 1) }}{{ 'aXb'|replace('X', '') }}", {}, "a+b-cab"),
    ("{{ '%s is %d%%' % ('x', 5) }}{{ '%s'|format('y') }}", {}, "x is 5%y"),
    ("{{ ({'a': 1}).get('b', 2) }}{{ {'a': 1}.items()|list }}", {}, "2[('a', 1)]"),
    (
        "{{ x is mapping }}{{ x.a is string }}{{ 3 is odd }}{{ 4 is divisibleby 2 }}",
        dict(x={"a": "b"}),
        "TrueTrueTrueTrue",
    ),
    ("{{ 1 < 2 < 3 }}{{ 'b' in 'abc' }}{{ 1 not in [2] }}", {}, "TrueTrueTrue"),
    ("{{ content.split('</think>')[-1].lstrip('\\n') }}", dict(content="a</think>\n\nb"), "b"),
    ("{{- 'a' }}\n{#- note -#}\n{{ 'b' }}", {}, "ab"),
    ("{{ 'x' | e }}{{ '<' | escape }}{{ '<' | safe }}", {}, "x&lt;<"),
    ("{{ strftime_now('%Y')|length }}", {}, "4"),
    ("{{ dict(a=1)['a'] }}{{ [1] + [2] }}{{ (1, 2) }}", {}, "1[1, 2](1, 2)"),
    ("{% with x = 1 %}{{ x }}{% endwith %}", {}, "1"),
]


@pytest.mark.parametrize(("source", "variables", "expected"), EXAMPLES)
def test_example(source, variables, expected):
    assert write(source, **json.loads(json.dumps(variables))) == expected


MISTAKES = [
    ("{{ 1 +", "line 1"),
    ("a\nb\n{% if x %}", "line 3"),
    ("x\n{{ 'a'|nosuch }}", "line 2"),
    ("a\n{% include 'secret' %}", "line 2: a chat template cannot include another file"),
    ("{% import 'x' as y %}", "import another file"),
    ("{% extends 'x' %}", "extend another file"),
    ("{% block a %}{% endblock %}", "define a block"),
    ("\n\n{{ raise_exception('roles must alternate') }}", "in line 3: roles must alternate"),
    ("\n{{ 1 / 0 }}", "fails in line 2: division by zero"),
    ("{{ x.y.z() }}", "is undefined"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself without end"),
    ("{{ 'a' + 1 }}", "line 1"),
]


@pytest.mark.parametrize(("source", "words"), MISTAKES)
def test_a_mistake_is_told_with_its_line(source, words):
    with pytest.raises(TemplateError, match="chat template") as caught:
        write(source)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
