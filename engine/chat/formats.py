"""FORMATS: chat templates for models whose file has none, by the name the field gives them.

A format is a short template in the same language; in the frames below @R stands for the role, @C
for the content. `detect` tells which of them a template looks like, by the marks in its text.
"""

from collections.abc import Callable

_ROLES = "{% for m in messages %}"
_END = "{% endfor %}"


def _generate(text: str) -> str:
    return "{% if add_generation_prompt %}" + text + "{% endif %}"


def _alike(turn: str, prompt: str) -> str:
    """Every role in the same frame."""
    shown = turn.replace("@R", "{{ m.role }}").replace("@C", "{{ m.content }}")
    return _ROLES + shown + _END + _generate(prompt)


def _trimmed(turn: str, prompt: str) -> str:
    return _alike(turn, prompt).replace("m.content", "m.content | trim")


def _by_role(system: str, user: str, assistant: str, prompt: str = "", start: str = "") -> str:
    """A frame for each role."""
    frames = [turn.replace("@C", "{{ m.content }}") for turn in (system, user, assistant)]
    return (
        start
        + _ROLES
        + "{% if m.role == 'system' %}"
        + frames[0]
        + "{% elif m.role == 'assistant' %}"
        + frames[2]
        + "{% else %}"
        + frames[1]
        + "{% endif %}"
        + _END
        + _generate(prompt)
    )


def _llama2(system: str, turn: str = "[INST] ", content: str = "m.content") -> str:
    """The first text opens the turn; an answer closes it, and the next question opens another."""
    return (
        "{% set ns = namespace(inside=false) %}"
        + _ROLES
        + "{% if m.role != 'assistant' and not ns.inside %}"
        + "{{ '[INST] ' if loop.first else '"
        + turn
        + "' }}{% set ns.inside = true %}{% endif %}"
        + "{% if m.role == 'system' %}"
        + system
        + "{% elif m.role == 'user' %}{{ "
        + content
        + " }} [/INST]"
        + "{% else %}{{ "
        + content
        + " }}</s>{% set ns.inside = false %}{% endif %}"
        + _END
    )


def _mistral(turn: str, close: str, answer: str) -> str:
    return (
        "{% set ns = namespace(inside=false) %}"
        + _ROLES
        + "{% if m.role != 'assistant' and not ns.inside %}"
        + turn
        + "{% set ns.inside = true %}{% endif %}"
        + "{% if m.role == 'system' %}{{ m.content }}\n\n"
        + "{% elif m.role == 'user' %}{{ m.content }}"
        + close
        + "{% else %}"
        + answer
        + "</s>{% set ns.inside = false %}{% endif %}"
        + _END
    )


def _mistral_v7(blank: str) -> str:
    return _by_role(
        f"[SYSTEM_PROMPT]{blank}@C[/SYSTEM_PROMPT]", f"[INST]{blank}@C[/INST]", f"{blank}@C</s>"
    )


_GEMMA = (
    "{% set ns = namespace(before='') %}"
    + _ROLES
    + "{% if m.role == 'system' %}{% set ns.before = (m.content | trim) ~ '\n\n' %}"
    + "{% else %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    + "{% if m.role != 'assistant' %}{{ ns.before }}{% set ns.before = '' %}{% endif %}"
    + "{{ m.content | trim }}<end_of_turn>\n{% endif %}"
    + _END
    + _generate("<start_of_turn>model\n")
)
_TURN = "<|START_OF_TURN_TOKEN|><|{}_TOKEN|>{{{{ m.content | trim }}}}<|END_OF_TURN_TOKEN|>"
_COMMAND_R = _by_role(
    _TURN.format("SYSTEM"),
    _TURN.format("USER"),
    _TURN.format("CHATBOT"),
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
)
_ORION = (
    "{% set ns = namespace(before='') %}"
    + _ROLES
    + "{% if m.role == 'system' %}{% set ns.before = m.content ~ '\n\n' %}"
    + "{% elif m.role == 'assistant' %}{{ m.content }}</s>"
    + "{% else %}Human: {{ ns.before }}{{ m.content }}\n\nAssistant: </s>"
    + "{% set ns.before = '' %}{% endif %}"
    + _END
)
_RWKV = _by_role(
    "System: @C\n\n",
    "User: @C\n\n{% if loop.last %}Assistant:{% endif %}",
    "Assistant: @C\n\n",
)
_KIMI = _by_role(
    "<|im_system|>system<|im_middle|>@C<|im_end|>",
    "<|im_user|>user<|im_middle|>@C<|im_end|>",
    "<|im_assistant|>assistant<|im_middle|>@C<|im_end|>",
    "<|im_assistant|>assistant<|im_middle|>",
)
_GPT_OSS = (
    _ROLES
    + "<|start|>{{ m.role }}<|message|>{{ m.content }}"
    + "{{ '<|return|>' if m.role == 'assistant' else '<|end|>' }}"
    + _END
    + _generate("<|start|>assistant")
)
_SEED = (
    _ROLES
    + "<seed:bos>{{ m.role }}\n"
    + "{{ m.content | trim if m.role == 'assistant' else m.content }}<seed:eos>"
    + _END
    + _generate("<seed:bos>assistant\n")
)
_BAILING = "<role>{{ 'HUMAN' if m.role == 'user' else m.role | upper }}</role>@C"
_NOT_THINKING = (
    "{% if not messages or messages[0].role != 'system' %}"
    "<role>SYSTEM</role>detailed thinking off<|role_end|>{% endif %}"
)
_EXAONE = _by_role(
    "[|system|]@C[|endofturn|]\n",
    "{% if m.role == 'tool' %}[|tool|]@C[|endofturn|]\n{% else %}[|user|]@C\n{% endif %}",
    "[|assistant|]@C[|endofturn|]\n",
    "[|assistant|]",
).replace("m.content", "m.content | trim")
_GIGACHAT = _by_role(
    "@C<|message_sep|>",
    "user<|role_sep|>@C<|message_sep|>available functions<|role_sep|>[]<|message_sep|>",
    "assistant<|role_sep|>@C<|message_sep|>",
    "assistant<|role_sep|>",
    start="<s>",
)
_HUNYUAN = _by_role(
    "@C<｜hy_place▁holder▁no▁3｜>",
    "<｜hy_User｜>@C",
    "<｜hy_Assistant｜>@C<｜hy_place▁holder▁no▁2｜>",
    "<｜hy_Assistant｜>",
    start="<｜hy_begin▁of▁sentence｜>",
)
_GRANITE = _alike(
    "<|start_of_role|>@R<|end_of_role|>@C<|end_of_text|>\n",
    "<|start_of_role|>assistant<|end_of_role|>",
)
_PANGU_ROLES = {"system": "系统", "user": "用户", "assistant": "助手", "tool": "工具"}
_PANGU = (
    "{% if not messages or messages[0].role != 'system' %}[unused9]系统：[unused10]{% endif %}"
    + "{% set names = "
    + str(_PANGU_ROLES)
    + " %}"
    + _alike("[unused9]{{ names[m.role] or m.role }}：@C[unused10]", "[unused9]助手：")
)
_GLM_FRAME = "<|@R|>\n@C"
_SYS = "<<SYS>>\n{{ m.content }}\n<</SYS>>\n\n"

FORMATS: dict[str, str] = {
    "bailing": _alike(_BAILING, "<role>ASSISTANT</role>"),
    "bailing-think": _alike(_BAILING, "<role>ASSISTANT</role><think>"),
    "bailing2": _NOT_THINKING + _alike(_BAILING + "<|role_end|>", "<role>ASSISTANT</role>"),
    "chatglm3": "[gMASK]sop" + _alike("<|@R|>\n @C", "<|assistant|>"),
    "chatglm4": "[gMASK]<sop>" + _alike(_GLM_FRAME, "<|assistant|>\n"),
    "chatml": _alike("<|im_start|>@R\n@C<|im_end|>\n", "<|im_start|>assistant\n"),
    "command-r": _COMMAND_R,
    "deepseek": _by_role(
        "@C", "### Instruction:\n@C\n", "### Response:\n@C\n<|EOT|>\n", "### Response:\n"
    ),
    "deepseek-ocr": _alike("@C", ""),
    "deepseek2": _by_role(
        "@C\n\n", "User: @C\n\n", "Assistant: @C<｜end▁of▁sentence｜>", "Assistant:"
    ),
    "deepseek3": _by_role(
        "@C\n\n", "<｜User｜>@C", "<｜Assistant｜>@C<｜end▁of▁sentence｜>", "<｜Assistant｜>"
    ),
    "exaone-moe": _trimmed("<|@R|>\n@C<|endofturn|>\n", "<|assistant|>\n"),
    "exaone3": _EXAONE,
    "exaone4": _EXAONE,
    "falcon3": _alike("<|@R|>\n@C\n", "<|assistant|>\n"),
    "gemma": _GEMMA,
    "gigachat": _GIGACHAT,
    "glmedge": _alike(_GLM_FRAME, "<|assistant|>"),
    "gpt-oss": _GPT_OSS,
    "granite": _GRANITE,
    "granite-4.0": _GRANITE,
    "granite-4.1": _GRANITE,
    "grok-2": _by_role(
        "System: @C<|separator|>\n\n",
        "Human: @C<|separator|>\n\n",
        "Assistant: @C<|separator|>\n\n",
        "Assistant:",
    ),
    "hunyuan-dense": _HUNYUAN,
    "hunyuan-moe": _by_role(
        "<|startoftext|>@C<|extra_4|>", "<|startoftext|>@C<|extra_0|>", "@C<|eos|>"
    ),
    "hunyuan-vl": _by_role(
        "@C<｜hy_place▁holder▁no▁3｜>",
        "@C<｜hy_User｜>",
        "@C<｜hy_Assistant｜>",
        start="<｜hy_begin▁of▁sentence｜>",
    ),
    "kimi-k2": _KIMI,
    "llama2": _llama2("{{ m.content }}\n"),
    "llama2-sys": _llama2(_SYS),
    "llama2-sys-bos": _llama2(_SYS, turn="<s>[INST] "),
    "llama2-sys-strip": _llama2(_SYS, content="m.content | trim"),
    "llama3": _trimmed(
        "<|start_header_id|>@R<|end_header_id|>\n\n@C<|eot_id|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "llama4": _trimmed(
        "<|header_start|>@R<|header_end|>\n\n@C<|eot|>",
        "<|header_start|>assistant<|header_end|>\n\n",
    ),
    "megrez": _alike(
        "<|role_start|>@R<|role_end|>@C<|turn_end|>", "<|role_start|>assistant<|role_end|>"
    ),
    "minicpm": _by_role("@C", "<用户>@C<AI>", "@C").replace("m.content", "m.content | trim"),
    "mistral-v1": _mistral(" [INST] ", " [/INST]", " {{ m.content }}"),
    "mistral-v3": _mistral("[INST] ", "[/INST]", " {{ m.content | trim }}"),
    "mistral-v3-tekken": _mistral("[INST]", "[/INST]", "{{ m.content }}"),
    "mistral-v7": _mistral_v7(" "),
    "mistral-v7-tekken": _mistral_v7(""),
    "monarch": _alike("{{ '' if loop.first else '<s>' }}@R\n@C</s>\n", "<s>assistant\n"),
    "openchat": _by_role(
        "@C<|end_of_turn|>",
        "GPT4 Correct User: @C<|end_of_turn|>",
        "GPT4 Correct Assistant: @C<|end_of_turn|>",
        "GPT4 Correct Assistant:",
    ),
    "orion": _ORION,
    "pangu-embedded": _PANGU,
    "phi3": _alike("<|@R|>\n@C<|end|>\n", "<|assistant|>\n"),
    "phi4": _alike("<|im_start|>@R<|im_sep|>@C<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
    "rwkv-world": _RWKV,
    "seed_oss": _SEED,
    "smolvlm": _by_role(
        "@C\n\n",
        "User: @C<end_of_utterance>\n",
        "Assistant: @C<end_of_utterance>\n",
        "Assistant:",
        start="<|im_start|>",
    ),
    "solar-open": _alike("<|begin|>@R<|content|>@C<|end|>", "<|begin|>assistant"),
    "vicuna": _by_role("@C\n\n", "USER: @C\n", "ASSISTANT: @C</s>\n", "ASSISTANT:"),
    "vicuna-orca": _by_role("SYSTEM: @C\n", "USER: @C\n", "ASSISTANT: @C</s>\n", "ASSISTANT:"),
    "yandex": _by_role(
        "", " Пользователь: @C\n\n", " Ассистент: @C\n\n", " Ассистент:[SEP]", start="<s>"
    ),
    "zephyr": _alike("<|@R|>\n@C<|endoftext|>\n", "<|assistant|>\n"),
}


def detect(source: str) -> str | None:
    """Return the name of the format that a template's text is, or looks like; None for none."""
    if source in FORMATS:
        return source
    found = next((name for name, marks in _MARKS if all(mark in source for mark in marks)), None)
    if found == "[INST]" or (found is None and source.startswith("mistral")):
        found = _detect_inst(source)
    return found if found in FORMATS else None


def known_to(has_token: Callable[[str], bool]) -> str:
    """Return the format that a vocabulary was made for: all its marks are tokens there.

    Decision: a file without a template is not always ChatML, which to a Gemma is only letters.
    ChatML is what is left when the vocabulary has no format's marks.
    """
    marked = ((name, marks) for name, marks in _MARKS if name in FORMATS)
    return next((name for name, marks in marked if all(map(has_token, marks))), "chatml")


# The first row whose marks are all in the text.
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("phi4", ("<|im_start|>", "<|im_sep|>")),
    ("smolvlm", ("<|im_start|>", "<end_of_utterance>")),
    ("chatml", ("<|im_start|>",)),
    ("[INST]", ("[INST]",)),
    ("phi3", ("<|assistant|>", "<|end|>")),
    ("chatglm4", ("[gMASK]<sop>",)),
    ("exaone-moe", ("<|assistant|>", "<|user|>", "<|tool_declare|>")),
    ("falcon3", ("<|assistant|>", "<|user|>", "</s>")),
    ("glmedge", ("<|assistant|>", "<|user|>")),
    ("zephyr", ("<|user|>", "<|endoftext|>")),
    ("monarch", ("bos_token + message['role']",)),
    ("gemma", ("<start_of_turn>",)),
    ("orion", (r"'\n\nAssistant: ' + eos_token",)),
    ("openchat", ("GPT4 Correct ",)),
    ("vicuna-orca", ("USER: ", "ASSISTANT: ", "SYSTEM: ")),
    ("vicuna", ("USER: ", "ASSISTANT: ")),
    ("deepseek", ("### Instruction:", "<|EOT|>")),
    ("command-r", ("<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>")),
    ("llama3", ("<|start_header_id|>",)),
    ("chatglm3", ("[gMASK]sop",)),
    ("minicpm", ("<用户>",)),
    ("deepseek2", ("'Assistant: ' + message['content'] + eos_token",)),
    ("deepseek3", ("<｜Assistant｜>", "<｜User｜>", "<｜end▁of▁sentence｜>")),
    ("exaone4", ("[|system|]", "[|assistant|]", "[|endofturn|]", "[|tool|]")),
    ("exaone3", ("[|system|]", "[|assistant|]", "[|endofturn|]")),
    ("rwkv-world", ("rwkv-world",)),
    ("granite", ("<|start_of_role|>",)),
    ("gigachat", ("message['role'] + additional_special_tokens[0] + message['content']",)),
    ("megrez", ("<|role_start|>",)),
    ("yandex", (" Ассистент:",)),
    ("bailing2", ("<role>ASSISTANT</role>", "'HUMAN'", "<|role_end|>")),
    ("bailing-think", ("<role>ASSISTANT</role>", "'HUMAN'", "<think>")),
    ("bailing", ("<role>ASSISTANT</role>", "'HUMAN'")),
    ("llama4", ("<|header_start|>",)),
    ("gpt-oss", ("<|start|>", "<|channel|>")),
    ("dots1", ("<|endofuserprompt|>",)),  # told apart, but not written
    ("hunyuan-moe", ("<|startoftext|>", "<|extra_4|>")),
    ("hunyuan-dense", ("<｜hy_place▁holder▁no▁2｜>", "<｜hy_place▁holder▁no▁3｜>")),
    ("kimi-k2", ("<|im_assistant|>assistant<|im_middle|>",)),
    ("seed_oss", ("<seed:bos>",)),
    ("grok-2", ("'Assistant: '", "<|separator|>")),
    ("pangu-embedded", ("[unused9]系统：[unused10]",)),
    ("solar-open", ("<|begin|>", "<|content|>", "<|end|>")),
)


def _detect_inst(source: str) -> str:
    """Tell the relatives apart that all write [INST]."""
    if "[SYSTEM_PROMPT]" in source:
        return "mistral-v7"
    if "' [INST] ' + system_message" in source or "[AVAILABLE_TOOLS]" in source:
        if " [INST]" in source:
            return "mistral-v1"
        return "mistral-v3-tekken" if '"[INST]"' in source else "mistral-v3"
    if "content.strip()" in source:
        return "llama2-sys-strip"
    if "bos_token + '[INST]" in source:
        return "llama2-sys-bos"
    return "llama2-sys" if "<<SYS>>" in source else "llama2"
