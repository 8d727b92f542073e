"""Nodes to the text that the matching library reads: regular expressions and Lark rules."""

from collections.abc import Iterable

from engine.grammar.rules import (
    Characters,
    Choice,
    Node,
    OneToken,
    Range,
    Reference,
    Repeat,
    Sequence,
)


def regex(node: Node) -> str:
    """Return the regular expression of a node that holds neither references nor tokens."""
    if isinstance(node, Characters):
        return _set(node.ranges)
    if isinstance(node, Choice):
        return "(?:" + "|".join(regex(option) for option in node.options) + ")"
    if isinstance(node, Repeat):
        return _group(node.part) + _times(node)
    if isinstance(node, Sequence):
        return "".join(regex(part) for part in node.parts)
    raise TypeError(f"{type(node).__name__} has no regular expression")


def terminal(node: Node) -> str:
    """Return a node as a Lark terminal, /…/."""
    return "/" + (regex(node) or "(?:)") + "/"


def rule_body(node: Node, names: dict[Node, str]) -> str:
    """Return the right side of a Lark rule.

    `names` gives the terminal that stands for a node, or the rule for a reference; what is not
    named is written out, one terminal for each code point.
    """
    if node in names:
        return names[node]
    if isinstance(node, Characters):
        return terminal(node)
    if isinstance(node, Choice):
        return "(" + " | ".join(rule_body(option, names) for option in node.options) + ")"
    if isinstance(node, Repeat) and node.most == 0:
        return '""'
    if isinstance(node, Repeat):
        return "(" + rule_body(node.part, names) + ")" + _times(node)
    if isinstance(node, OneToken):
        return f"<[{'^' if node.negated else ''}{node.token}]>"
    if isinstance(node, Reference):
        raise TypeError(f"the rule {node.name} has no name here")
    return " ".join(rule_body(part, names) for part in node.parts) or '""'


def grammar(rules: Iterable[tuple[str, str]]) -> str:
    """Return Lark text of (name, right side); the first rule must be called `start`."""
    return "\n".join(f"{name}: {body}" for name, body in rules) + "\n"


def _set(ranges: tuple[Range, ...]) -> str:
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    return "[" + "".join(_range(low, high) for low, high in ranges) + "]"


def _range(low: int, high: int) -> str:
    return code_point(low) if low == high else f"{code_point(low)}-{code_point(high)}"


def code_point(code: int) -> str:
    """Return the regular expression of one code point."""
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"


def _group(part: Node) -> str:
    text = regex(part)
    return text if isinstance(part, Characters | Choice) else f"(?:{text})"


def _times(node: Repeat) -> str:
    if (node.least, node.most) in (known := {(0, None): "*", (1, None): "+", (0, 1): "?"}):
        return known[(node.least, node.most)]
    if node.most is None:
        return f"{{{node.least},}}"
    return f"{{{node.least},{node.most}}}"
