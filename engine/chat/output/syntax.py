"""How a template has a model write its reasoning and its calls of tools, told from its source."""

import re
from dataclasses import dataclass, replace

from engine.chat.output.json_calls import JsonCalls, NamedCalls
from engine.chat.output.literal_calls import PythonCalls, QuotedCalls
from engine.chat.output.parts import Reader
from engine.chat.output.tagged_calls import TaggedCalls

THINK = ("<think>", "</think>")


@dataclass(frozen=True)
class OutputSyntax:
    """`name` of the family, the tags of reasoning, how calls are written, and what frames content.

    `is_harmony`: channels instead of tags. `frames` are markers around content, left out of it.
    `lead` is what the prompt ends with and the first part of an answer begins with.
    """

    name: str
    tags: tuple[str, str] | None = None
    calls: Reader | None = None
    frames: tuple[str, ...] = ()
    lead: str = ""
    is_harmony: bool = False


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


_LIST = r"[\s\[\],]*"
_HERMES = JsonCalls(("<tool_call>",), _compiled(r"(?:\s|</?tool_call>|[\[\],])*"))
_MISTRAL_LIST = JsonCalls(("[TOOL_CALLS]",), _compiled(rf"(?:\s|\[TOOL_CALLS\]|{_LIST[:-1]})*"))
_MISTRAL = NamedCalls(
    ("[TOOL_CALLS]",),
    _compiled(
        r"\s*\[TOOL_CALLS\]\s*(?P<name>[^\[\]{}]+?)\s*(?:\[CALL_ID\](?P<id>[^\[]*))?\[ARGS\]\s*"
    ),
    _compiled(r"\s*"),
)
_KIMI = NamedCalls(
    ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    _compiled(
        r"\s*(?:<\|tool_calls_section_begin\|>)?\s*<\|tool_call_begin\|>\s*"
        r"(?P<id>(?:functions\.)?(?P<name>[^:<\s]+)(?::\d+)?)\s*<\|tool_call_argument_begin\|>\s*"
    ),
    _compiled(r"\s*<\|tool_call_end\|>\s*(?:<\|tool_calls_section_end\|>)?"),
)
_DEEPSEEK = NamedCalls(
    ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
    _compiled(
        r"\s*(?:<｜tool▁calls▁begin｜>)?\s*<｜tool▁call▁begin｜>\s*(?:function<｜tool▁sep｜>(?!\s*\{))?+"
        r"(?P<name>[^<\n]+?)\s*(?:<｜tool▁sep｜>|\n```json\n)\s*"
    ),
    _compiled(r"\s*(?:```)?\s*<｜tool▁call▁end｜>\s*(?:<｜tool▁calls▁end｜>)?"),
)
_FUNCTION_TAG = NamedCalls(
    ("<function=",),
    _compiled(r"\s*<function=(?P<name>[^>\s]+)>\s*"),
    _compiled(r"\s*(?:</function>)?\s*"),
)
_FUNCTIONARY = NamedCalls(
    (">>>",), _compiled(r"\s*>>>(?P<name>(?!all\n)[\w.-]+)\n\s*"), _compiled(r"\s*")
)
_CODER = TaggedCalls(
    ("<tool_call>", "<function="),
    _compiled(r"\s*(?:<tool_call>)?\s*<function=(?P<name>[^>\s]+)>\s*"),
    _compiled(r"\s*<parameter=(?P<key>[^>]+)>"),
    ("</parameter>",),
    _compiled(r"\s*</function>\s*(?:</tool_call>)?"),
)
_GLM = TaggedCalls(
    ("<tool_call>",),
    _compiled(r"\s*<tool_call>\s*(?P<name>[^<\s]+)\s*(?=<arg_key>|</tool_call>)"),
    _compiled(r"\s*<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>"),
    ("</arg_value>",),
    _compiled(r"\s*</tool_call>"),
)
_DSML = TaggedCalls(
    ("<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"),
    _compiled(
        r"\s*(?:<｜DSML｜(?:function|tool)_calls>)?\s*<｜DSML｜invoke name=\"(?P<name>[^\"]+)\">\s*"
    ),
    _compiled(
        r"\s*<｜DSML｜parameter name=\"(?P<key>[^\"]+)\""
        r"(?:\s+string=\"(?P<is_text>true|false)\")?>"
    ),
    ("</｜DSML｜parameter>",),
    _compiled(r"\s*</｜DSML｜invoke>\s*(?:</｜DSML｜(?:function|tool)_calls>)?"),
)
_INVOKE = TaggedCalls(
    ("<minimax:tool_call>", "<invoke name="),
    _compiled(r"\s*(?:<minimax:tool_call>)?\s*<invoke name=\"(?P<name>[^\"]+)\">\s*"),
    _compiled(r"\s*<parameter name=\"(?P<key>[^\"]+)\">"),
    ("</parameter>",),
    _compiled(r"\s*</invoke>\s*(?:</minimax:tool_call>)?"),
)
_MINICPM = TaggedCalls(
    ("<function name=",),
    _compiled(r"\s*<function name=\"(?P<name>[^\"]+)\">\s*"),
    _compiled(r"\s*<param name=\"(?P<key>[^\"]+)\">"),
    ("</param>",),
    _compiled(r"\s*</function>"),
)
_ACTION = JsonCalls(
    ("<|START_ACTION|>",), _compiled(rf"(?:\s|<\|(?:START|END)_ACTION\|>|{_LIST[:-1]})*")
)
_GIGACHAT = JsonCalls(
    ("<|message_sep|>", "function call<|role_sep|>"),
    _compiled(r"\s*(?:<\|message_sep\|>)?\s*(?:function call<\|role_sep\|>)?\s*"),
)
_GRANITE = JsonCalls(
    ("<|tool_call|>", "<tool_call>"),
    _compiled(rf"(?:\s|<\|tool_call\|>|</?tool_call>|{_LIST[:-1]})*"),
)
_LLAMA = JsonCalls(("<|python_tag|>", "{"), _compiled(r"(?:\s|<\|python_tag\|>|;)*"), is_whole=True)
_LFM = PythonCalls(("<|tool_call_start|>",), "<|tool_call_end|>")
_GEMMA = QuotedCalls(("<|tool_call>",), "<tool_call|>")
_COHERE_TAGS = ("<|START_THINKING|>", "<|END_THINKING|>")
_COHERE_FRAMES = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")

# The first row whose marks are all in the source and whose excluded mark is not.
_FAMILIES: tuple[tuple[tuple[str, ...], str, OutputSyntax], ...] = (
    (("[TOOL_CALLS]", "[ARGS]"), "", OutputSyntax("mistral", ("[THINK]", "[/THINK]"), _MISTRAL)),
    (("<|channel|>", "<|message|>"), "",
     OutputSyntax("harmony", lead="<|start|>assistant", is_harmony=True)),
    ((">>>all",), "", OutputSyntax("functionary 3.2", None, _FUNCTIONARY, (">>>all\n",), ">>>")),
    (("<|tool_calls_section_begin|>",), "", OutputSyntax("kimi", THINK, _KIMI)),
    (("<|START_ACTION|>",), "", OutputSyntax("cohere", _COHERE_TAGS, _ACTION, _COHERE_FRAMES)),
    (("<|tool_call_start|>",), "", OutputSyntax("lfm2", THINK, _LFM)),
    (("List of tools: [",), "", OutputSyntax("lfm2", THINK, _LFM)),
    (("<|tool_list_start|>",), "", OutputSyntax("lfm2", THINK, _LFM)),
    (("<|role_sep|>", "<|message_sep|>"), "<|function_call|>",
     OutputSyntax("gigachat", None, _GIGACHAT)),
    (("｜DSML｜",), "", OutputSyntax("deepseek dsml", THINK, _DSML)),
    (("dsml_token",), "", OutputSyntax("deepseek dsml", THINK, _DSML)),
    (("<|tool_call>call:",), "",
     OutputSyntax("gemma 4", ("<|channel>thought", "<channel|>"), _GEMMA)),
    (('<function name="', '<param name="'), "", OutputSyntax("minicpm", THINK, _MINICPM)),
    (("<function=", "<parameter="), "", OutputSyntax("coder", THINK, _CODER)),
    (("<arg_key>",), "", OutputSyntax("glm", THINK, _GLM)),
    (("<invoke name=",), "", OutputSyntax("invoke", THINK, _INVOKE)),
    (("tool▁calls▁begin",), "", OutputSyntax("deepseek", THINK, _DEEPSEEK)),
    (("[TOOL_CALLS]",), "", OutputSyntax("mistral list", ("[THINK]", "[/THINK]"), _MISTRAL_LIST)),
    (("<tool_call>",), "", OutputSyntax("hermes", THINK, _HERMES)),
    (("<|tool_call|>",), "", OutputSyntax("granite", THINK, _GRANITE)),
    (("<function=",), "", OutputSyntax("functionary 3.1", None, _FUNCTION_TAG)),
    (("<|python_tag|>",), "", OutputSyntax("llama", None, _LLAMA)),
    (('{"name": function name, "parameters"',), "", OutputSyntax("llama", None, _LLAMA)),
)  # fmt: skip
_MORE_TAGS = (("<seed:think>", "</seed:think>"), ("<thinking>", "</thinking>"))


def find_syntax(source: str) -> OutputSyntax:
    """Return how a template has its model write; of one without tools, only its reasoning.

    Tags count only where the source speaks of them.
    """
    found = OutputSyntax("content")
    for marks, never, syntax in _FAMILIES:
        if all(mark in source for mark in marks) and not (never and never in source):
            found = syntax
            break
    if found.is_harmony:
        return found
    wanted = [found.tags] if found.tags else []
    wanted += [THINK, *_MORE_TAGS, ("[THINK]", "[/THINK]")]
    tags = next((pair for pair in wanted if pair and pair[1] in source), None)
    return replace(found, tags=tags)
