"""Outputs taken apart: what is known of each family, whole and in pieces cut anywhere."""

import json
import random
import time

import pytest

from engine.chat.output import Call, Output, OutputParser, find_syntax, read_output

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "arg1": {"type": "integer"},
                    "city": {"type": "string"},
                    "code": {"type": ["string", "null"]},
                    "list": {"type": "array"},
                },
            },
        },
    }
    for name in ("f", "get_weather")
]
SOURCES = {
    "qwen3": "<think></think>{{ '<tool_call>' }}",
    "hermes": "<tool_call>",
    "coder": "<tool_call><function=<parameter=<think></think>",
    "glm": "<tool_call><arg_key><think></think>",
    "deepseek": "<｜tool▁calls▁begin｜></think>",
    "dsml": "<｜DSML｜invoke <think></think>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|><think></think>",
    "mistral list": "[TOOL_CALLS][INST]",
    "ministral": "[SYSTEM_PROMPT][TOOL_CALLS][ARGS][THINK][/THINK]",
    "functionary 3.1": "<function=example>",
    "functionary 3.2": ">>>all>>>${recipient}",
    "llama": "<|python_tag|>",
    "harmony": "<|start|><|channel|><|message|>",
    "cohere": "<|START_ACTION|><|START_THINKING|><|END_THINKING|><|START_TEXT|>",
    "lfm2": "<|tool_list_start|><|tool_call_start|><think></think>",
    "gigachat": "<|role_sep|><|message_sep|>",
    "gemma 4": "'<|tool_call>call:' <|channel>thought <channel|>",
    "minicpm": 'Tool usage guidelines: <function name=" <param name=" <think></think>',
    "minimax": "<minimax:tool_call><invoke name=<think></think>",
    "granite": "<|tool_call|>",
    "content": "nothing of the kind",
}
CALL = Call("f", '{"arg1": 1}')


def calls(*made):
    return tuple(made)


# Family, is the reasoning open, what the model said, and the parts.
CASES = [
    (
        "qwen3",
        True,
        "Let me think...\n</think>\nThe answer is 42.",
        Output("Let me think...", "The answer is 42."),
    ),
    ("qwen3", False, "<think>\nI'm\nthinking\n</think>\n\nHello", Output("I'm\nthinking", "Hello")),
    ("qwen3", True, "</think>Hello, world!\nWhat's up?", Output("", "Hello, world!\nWhat's up?")),
    ("qwen3", True, "  \n</think>Hi", Output("", "Hi")),
    ("qwen3", True, "I never stop", Output("I never stop")),
    ("qwen3", False, "No thoughts <thi", Output("", "No thoughts <thi")),
    ("content", False, "<think>x</think>", Output("", "<think>x</think>")),
    (
        "hermes",
        False,
        'Hello<tool_call>\n{"name": "f", "arguments": {"arg1": 1}}</tool_call>',
        Output("", "Hello", calls(CALL)),
    ),
    (
        "hermes",
        False,
        '<tool_call>\n{"name": "f", "arguments": {"arg1": 1}}\n</tool_call>\n'
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Köln \\"}<"}}</tool_call>',
        Output("", "", calls(CALL, Call("get_weather", '{"city": "Köln \\"}<"}'))),
    ),
    (
        "hermes",
        False,
        '<tool_call>{"arguments": "{\\"arg1\\": 1}", "name": "f"}</tool_call>',
        Output("", "", calls(Call("f", '{"arg1": 1}'))),
    ),
    (
        "hermes",
        False,
        '<tool_call>{"name": "f"}</tool_call>',
        Output("", "", calls(Call("f", "{}"))),
    ),
    (
        "hermes",
        False,
        "I would write <tool_call> here.",
        Output("", "I would write <tool_call> here."),
    ),
    (
        "qwen3",
        True,
        'Hm.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"arg1": 1}}\n</tool_call>',
        Output("Hm.", "", calls(CALL)),
    ),
    (
        "coder",
        False,
        "<tool_call>\n<function=f>\n<parameter=arg1>\n1\n</parameter>\n</function>\n</tool_call>",
        Output("", "", calls(CALL)),
    ),
    (
        "coder",
        True,
        'Thinking<tool_call>\n<function=get_weather>\n<parameter=city>\nNew\n"York"\n</parameter>\n'
        "<parameter=list>\n[1, 2]\n</parameter>\n</function>\n</tool_call>",
        Output(
            "Thinking",
            "",
            calls(Call("get_weather", '{"city": "New\\n\\"York\\"", "list": [1, 2]}')),
        ),
    ),
    (
        "coder",
        False,
        "<function=f>\n<parameter=code>\n12\n</parameter>\n</function>",
        Output("", "", calls(Call("f", '{"code": "12"}'))),
    ),
    (
        "glm",
        False,
        "Ok.\n<tool_call>f\n<arg_key>arg1</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>12</arg_value>\n</tool_call>",
        Output("", "Ok.", calls(CALL, Call("get_weather", '{"city": "12"}'))),
    ),
    (
        "deepseek",
        True,
        "</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
        '```json\n{"arg1": 1}'
        "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        Output("", "", calls(CALL)),
    ),
    (
        "deepseek",
        False,
        'Hi <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"arg1": 1}'
        "<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        Output("", "Hi", calls(CALL, Call("get_weather", "{}"))),
    ),
    (
        "dsml",
        True,
        'Why</think>So\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n'
        '<｜DSML｜parameter name="arg1" string="false">1</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="new" string="true">2</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        Output("Why", "So", calls(Call("f", '{"arg1": 1, "new": "2"}'))),
    ),
    (
        "kimi",
        False,
        "Sure<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
        "<|tool_call_argument_begin|>"
        '{"arg1": 1}<|tool_call_end|><|tool_calls_section_end|>',
        Output("", "Sure", calls(Call("f", '{"arg1": 1}', "functions.f:0"))),
    ),
    (
        "mistral list",
        False,
        'Hi[TOOL_CALLS][{"name": "f", "arguments": {"arg1": 1}, "id": "123456789"}]',
        Output("", "Hi", calls(Call("f", '{"arg1": 1}', "123456789"))),
    ),
    (
        "ministral",
        False,
        '[THINK]Hm[/THINK]Hi[TOOL_CALLS]f[ARGS]{"arg1": 1}[TOOL_CALLS]get_weather[ARGS]{}',
        Output("Hm", "Hi", calls(CALL, Call("get_weather", "{}"))),
    ),
    (
        "ministral",
        False,
        '[TOOL_CALLS]f[CALL_ID]abc123456[ARGS]{"arg1": 1}',
        Output("", "", calls(Call("f", '{"arg1": 1}', "abc123456"))),
    ),
    ("functionary 3.1", False, '<function=f>{"arg1": 1}</function>', Output("", "", calls(CALL))),
    ("functionary 3.2", False, "all\nHello\nall\n", Output("", "Hello\nall\n")),
    ("functionary 3.2", False, 'all\nHi\n>>>f\n{"arg1": 1}', Output("", "Hi", calls(CALL))),
    ("functionary 3.2", False, 'f\n{"arg1": 1}', Output("", "", calls(CALL))),
    ("llama", False, '{"name": "f", "parameters": {"arg1": 1}}', Output("", "", calls(CALL))),
    (
        "llama",
        False,
        '<|python_tag|>{"name": "f", "parameters": {"arg1": 1}}',
        Output("", "", calls(CALL)),
    ),
    (
        "llama",
        False,
        '{"name": "Ann", "parameters": 5}',
        Output("", '{"name": "Ann", "parameters": 5}'),
    ),
    ("llama", False, 'Code: {"name": "f"}', Output("", 'Code: {"name": "f"}')),
    (
        "harmony",
        False,
        "<|channel|>analysis<|message|>I'm\nthinking<|end|><|start|>assistant"
        "<|channel|>final<|message|>Hi",
        Output("I'm\nthinking", "Hi"),
    ),
    (
        "harmony",
        False,
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant"
        "<|channel|>commentary to=functions.f "
        '<|constrain|>json<|message|>{"arg1": 1}<|call|>',
        Output("Hm", "", calls(CALL)),
    ),
    (
        "harmony",
        False,
        ' to=functions.f<|channel|>commentary<|message|>{"arg1": 1}',
        Output("", "", calls(CALL)),
    ),
    (
        "harmony",
        False,
        "<|channel|>commentary<|message|>Let me see.<|end|>",
        Output("", "Let me see."),
    ),
    ("harmony", False, "<|channel|>commentary to=browser.search<|message|>{}<|call|>", Output()),
    (
        "cohere",
        False,
        "<|START_THINKING|>Hm<|END_THINKING|><|START_ACTION|>[\n"
        '{"tool_call_id": "0", "tool_name": "f", "parameters": {"arg1": 1}}\n]<|END_ACTION|>',
        Output("Hm", "", calls(Call("f", '{"arg1": 1}', "0"))),
    ),
    (
        "cohere",
        False,
        "<|START_THINKING|>Hm<|END_THINKING|><|START_TEXT|>Hi<|END_TEXT|>",
        Output("Hm", "Hi"),
    ),
    (
        "lfm2",
        False,
        "<|tool_call_start|>[f(arg1=1), get_weather(city='a, b')]<|tool_call_end|>",
        Output("", "", calls(CALL, Call("get_weather", '{"city": "a, b"}'))),
    ),
    (
        "gigachat",
        False,
        'Hi<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "f", "arguments": {"arg1": 1}}',
        Output("", "Hi", calls(CALL)),
    ),
    (
        "gemma 4",
        False,
        '<|channel>thought\nHm<channel|>Hi<|tool_call>call:f{arg1:1,city:<|"|>a {b:1} "c"<|"|>}'
        "<tool_call|>",
        Output("Hm", "Hi", calls(Call("f", '{"arg1": 1, "city": "a {b:1} \\"c\\""}'))),
    ),
    (
        "minicpm",
        False,
        '<function name="f"><param name="arg1">1</param><param name="city"><![CDATA[<b>]]></param>'
        "</function>",
        Output("", "", calls(Call("f", '{"arg1": 1, "city": "<b>"}'))),
    ),
    (
        "minimax",
        False,
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="arg1">1</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        Output("", "", calls(CALL)),
    ),
    (
        "granite",
        False,
        '<|tool_call|>[{"name": "f", "arguments": {"arg1": 1}}]',
        Output("", "", calls(CALL)),
    ),
]
IDS = [f"{case[0]} {i}" for i, case in enumerate(CASES)]


def joined(deltas):
    """Return what the pieces add up to, call by call in order."""
    made = []
    for delta in deltas:
        for call in delta.calls:
            same = made and made[-1].name == call.name and not _is_whole(made[-1].arguments)
            if made and made[-1].name == call.name and not call.arguments and call.id:
                made[-1] = Call(call.name, made[-1].arguments, call.id)  # it came last
            elif same:
                made[-1] = Call(call.name, made[-1].arguments + call.arguments, call.id)
            else:
                made.append(call)
    text = "".join(delta.reasoning for delta in deltas), "".join(d.content for d in deltas)
    return Output(*text, tuple(made))


def _is_whole(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("family", "is_open", "text", "wanted"), CASES, ids=IDS)
def test_a_whole_output(family, is_open, text, wanted):
    found = read_output(text, find_syntax(SOURCES[family]), tools=TOOLS, is_open=is_open)
    assert found == wanted
    assert all(_is_whole(call.arguments) for call in found.calls)


@pytest.mark.parametrize(("family", "is_open", "text", "wanted"), CASES, ids=IDS)
def test_the_same_in_pieces_cut_anywhere(family, is_open, text, wanted):
    syntax = find_syntax(SOURCES[family])
    for seed in range(8):
        rng, parser, deltas = random.Random(seed), None, []
        parser = OutputParser(syntax, tools=TOOLS, is_open=is_open)
        place = 0
        while place < len(text):
            size = 1 if seed == 0 else rng.randint(1, 9)
            deltas.append(parser.feed(text[place : place + size]))
            assert wanted.reasoning.startswith(parser.output.reasoning)
            assert wanted.content.startswith(parser.output.content)
            names = [call.name for call in parser.output.calls]
            assert names == [call.name for call in wanted.calls][: len(names)]
            place += size
        deltas.append(parser.finish())
        assert parser.output == wanted
        assert joined(deltas) == wanted


def test_without_tools_calls_are_content():
    text = 'Hello<tool_call>\n{"name": "f", "arguments": {}}</tool_call>'
    assert read_output(text, find_syntax(SOURCES["hermes"])) == Output("", text)


def test_a_string_streams_while_it_has_no_end():
    parser = OutputParser(find_syntax(SOURCES["coder"]), tools=TOOLS)
    parser.feed("<tool_call>\n<function=get_weather>\n<parameter=city>\nNew Yo")
    assert parser.output.calls == (Call("get_weather", '{"city": "New Yo'),)
    assert parser.feed("rk\n</par").calls == (Call("get_weather", "rk"),)
    assert parser.feed("ameter>\n").calls == (Call("get_weather", '"'),)
    assert parser.feed("</function>").calls == (Call("get_weather", "}"),)


@pytest.mark.parametrize("text", ['```json\n"42"\n```', '"42"\n', '\n```\n"42"\n```\n', '"42"'])
def test_a_fence_around_json_goes(text):
    syntax = find_syntax(SOURCES["llama"])
    assert read_output(text, syntax, is_json=True).content == '"42"'
    parser = OutputParser(syntax, is_json=True)
    assert all(parser.feed(char).content == "" for char in text)
    assert parser.finish().content == '"42"'


def test_the_last_tag_alone_tells_once_all_is_there():
    text = "I'm\nthinking</think>Hello, world!\nWhat's up?"
    found = read_output(text, find_syntax(SOURCES["qwen3"]))
    assert found == Output("I'm\nthinking", "Hello, world!\nWhat's up?")


@pytest.mark.parametrize("family", SOURCES)
def test_hostile_outputs_end_in_time_and_never_in_an_error(family):
    syntax = find_syntax(SOURCES[family])
    marks = [*(syntax.calls.starts if syntax.calls else ()), *(syntax.tags or ()), "<|message|>"]
    rng, begun = random.Random(1), time.thread_time()
    pieces = [
        *marks,
        *'{}[]":,\\\n <>a1',
        '{"name": "f", "arguments": {',
        "<parameter=a>",
        "[ARGS]",
    ]
    for _ in range(150):
        text = "".join(rng.choice(pieces) for _ in range(40))
        for is_partial in (True, False):
            found = read_output(text, syntax, tools=TOOLS, is_partial=is_partial)
            assert all(call.name for call in found.calls)
    for text in (
        "[" * 50_000,
        "{" * 50_000,
        '{"a":' * 20_000,
        "<" * 50_000,
        '"' * 50_000,
        "\\" * 50_000,
    ):
        for mark in (*marks, "f"):
            read_output(mark + text, syntax, tools=TOOLS)
    assert time.thread_time() - begun < 5


def test_every_family_is_told_by_its_template():
    told = {name: find_syntax(source).name for name, source in SOURCES.items()}
    assert told == {name: name for name in SOURCES} | {
        "qwen3": "hermes",
        "dsml": "deepseek dsml",
        "ministral": "mistral",
        "minimax": "invoke",
    }
    assert find_syntax(SOURCES["hermes"]).tags is None
    assert find_syntax("<seed:think></seed:think>").tags == ("<seed:think>", "</seed:think>")
