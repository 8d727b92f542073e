"""GBNF text to rules, with the place of every mistake."""

from collections.abc import Callable

from engine.errors import GrammarError, nearest
from engine.grammar.cursor import Cursor
from engine.grammar.rules import (
    EMPTY,
    LAST,
    Characters,
    Choice,
    Node,
    OneToken,
    Reference,
    Repeat,
    Rules,
    Sequence,
    characters,
    joined,
    leftmost,
    references,
)

MAX_REPEAT = 2000  # times one item may be written out, nested repetitions multiplied
MAX_DEPTH = 100  # groups inside groups
MAX_STACKED = 10  # repetitions of one item one after the other, as in "a"*+?
MAX_RULES = 1000
MAX_NAME = 200  # characters of a rule's name
MAX_ITEMS = 20_000  # characters in quotes, classes, references and groups
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEX = {"x": 2, "u": 4, "U": 8}

Tokenize = Callable[[str], list[int]]


def read_gbnf(text: str, tokenize: Tokenize | None = None) -> Rules:
    """Return the rules of a GBNF text whose root symbol is `root`.

    `tokenize` gives the ids of a text with special tokens parsed, for terminals such as
    `<think>`. Raises GrammarError with line and column.
    """
    rules = _Reader(text, tokenize).rules()
    for name, body in rules.bodies.items():
        for other in sorted(references(body) - rules.bodies.keys()):
            hint = nearest(other, rules.bodies)
            raise GrammarError(f"The rule “{name}” uses “{other}”, which is not defined.{hint}")
    if rules.root not in rules.bodies:
        raise GrammarError("The grammar has no rule “root”, where every grammar begins.")
    _refuse_left_recursion(rules)
    return rules


class _Reader:
    """Reads one text; weights and symbols are counted so that repetitions stay sane."""

    def __init__(self, text: str, tokenize: Tokenize | None) -> None:
        self.at, self.tokenize = Cursor(text, "grammar"), tokenize
        self.n_symbols, self.names = 0, set[str]()
        self.n_items = 0

    def rules(self) -> Rules:
        bodies: dict[str, Node] = {}
        self._space(newlines=True)
        while self.at.next:
            name = self._name()
            self._space(newlines=False)
            if not self.at.skips("::="):
                raise self.at.error(f"needs “::=” after the name “{name}”")
            self._space(newlines=True)
            if len(bodies) >= MAX_RULES:
                raise self.at.error(f"has more than {MAX_RULES:,} rules")
            bodies[name] = self._alternates(depth=0)
            if self.at.next and self.at.next not in "\r\n":
                raise self.at.error(f"has an unexpected “{self.at.next}”")
            self._space(newlines=True)
        return Rules(bodies)

    def _space(self, newlines: bool) -> None:
        while char := self.at.next:
            if char == "#":
                while self.at.next and self.at.next not in "\r\n":
                    self.at.place += 1
            elif char in " \t" or (newlines and char in "\r\n"):
                self.at.place += 1
            else:
                return

    def _name(self) -> str:
        begin = self.at.place
        while self.at.next in _NAME:
            self.at.place += 1
        name = self.at.text[begin : self.at.place]
        if not name:
            raise self.at.error("needs the name of a rule (letters, digits and “-”)")
        if len(name) > MAX_NAME:
            raise self.at.error(f"has a name of more than {MAX_NAME} characters", begin)
        if name not in self.names:
            self.names.add(name)
            self.n_symbols += 1
        return name

    def _alternates(self, depth: int) -> Node:
        options = [self._sequence(depth)]
        while self.at.skips("|"):
            self._space(newlines=True)
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        item: tuple[Node, int] | None = None  # what a repetition would apply to, and its weight
        n_stacked = 0
        while (char := self.at.next) and char not in "|)\r\n":
            if char in "*+?{":
                if item is None:
                    raise self.at.error(f"has “{char}” with nothing before it to repeat")
                n_stacked += 1
                if n_stacked > MAX_STACKED:
                    raise self.at.error(f"repeats one item more than {MAX_STACKED} times over")
                item = self._repeat(*item)
                parts[-1] = item[0]
            else:
                item, n_stacked = self._item(char, depth), 0
                if item:
                    parts.append(item[0])
            self._space(newlines=depth > 0)
        return joined(parts)

    def _item(self, char: str, depth: int) -> tuple[Node, int] | None:
        """Return the next item and its weight; None when it contributes nothing."""
        self._count_item()
        if char == '"':
            text = self._literal()
            return (text, 1) if text != EMPTY else None
        if char == "[":
            found = self._class()
            return (found, 1) if found else None
        if char == "(":
            return self._group(depth)
        if char == ".":
            self.at.take()
            return characters([(0, LAST)]), 1
        if char in "<!":
            return self._token(), 1
        if char in _NAME:
            return Reference(self._name()), 1
        raise self.at.error(f"has an unexpected “{char}”")

    def _group(self, depth: int) -> tuple[Node, int]:
        begin, before = self.at.place, self.n_symbols
        if depth >= MAX_DEPTH:
            raise self.at.error(f"nests groups deeper than {MAX_DEPTH}")
        self.at.take()
        self._space(newlines=True)
        self.n_symbols += 1
        body = self._alternates(depth + 1)
        if not self.at.skips(")"):
            raise self.at.error("opens a group that is never closed", begin)
        return body, max(1, self.n_symbols - before)

    def _repeat(self, node: Node, weight: int) -> tuple[Node, int]:
        begin = self.at.place
        least, most = self._bounds()
        if least > MAX_REPEAT:
            raise self.at.error(f"repeats more than {MAX_REPEAT} times", begin)
        if most is not None and most < least:
            raise self.at.error("ends a repetition below its begin", begin)
        most = None if most is not None and most > MAX_REPEAT else most
        weight *= most or least or 1
        if weight > MAX_REPEAT:
            raise self.at.error(f"nests repetitions to more than {MAX_REPEAT} times", begin)
        self.n_symbols += 1 if most is None else most - least
        return Repeat(node, least, most), weight

    def _bounds(self) -> tuple[int, int | None]:
        sign = self.at.take()
        if sign != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        self._space(newlines=True)
        least = self.at.number()
        if least is None:
            raise self.at.error("needs a number after “{”")
        self._space(newlines=True)
        most: int | None = least
        if self.at.skips(","):
            self._space(newlines=True)
            most = self.at.number()
            self._space(newlines=True)
        if not self.at.skips("}"):
            raise self.at.error("needs “}” after a repetition")
        return least, most

    def _count_item(self) -> None:
        self.n_items += 1
        if self.n_items > MAX_ITEMS:
            raise self.at.error(f"is larger than {MAX_ITEMS:,} items")

    def _char(self) -> int:
        self._count_item()
        begin = self.at.place
        char = self.at.take()
        if char != "\\":
            return ord(char)
        kind = self.at.take()
        if kind in _HEX:
            return self.at.hex(_HEX[kind])
        if kind not in _ESCAPES:
            raise self.at.error(f"has an unknown escape “\\{kind}”", begin)
        return ord(_ESCAPES[kind])

    def _literal(self) -> Node:
        begin = self.at.place
        self.at.take()
        parts: list[Node] = []
        while not self.at.skips('"'):
            if not self.at.next:
                raise self.at.error("opens a text that is never closed", begin)
            code = self._char()
            parts.append(characters([(code, code)]))
        return joined(parts) if len(parts) == 1 else Sequence(tuple(parts))

    def _class(self) -> Characters | None:
        begin = self.at.place
        self.at.take()
        negated = self.at.skips("^")
        ranges = []
        while not self.at.skips("]"):
            if not self.at.next:
                raise self.at.error("opens a class that is never closed", begin)
            low = high = self._char()
            ahead = self.at.text[self.at.place : self.at.place + 2]
            if ahead[:1] == "-" and ahead[1:] not in ("]", ""):
                self.at.take()
                high = self._char()
            if high < low:
                raise self.at.error("has a range that ends before it begins")
            ranges.append((low, high))
        return characters(ranges, negated) if ranges else None

    def _token(self) -> OneToken:
        begin = self.at.place
        negated = self.at.skips("!")
        end = self.at.text.find(">", self.at.place)
        text = self.at.text[self.at.place : end + 1]
        if not text.startswith("<") or not 0 <= end < begin + MAX_NAME or "\n" in text:
            raise self.at.error("needs a token, as in <[123]> or <think>", begin)
        self.at.place += 1
        if self.at.skips("["):
            token = self.at.number()
            if token is None or not self.at.skips("]>"):
                raise self.at.error("needs a token id, as in <[123]>", begin)
            return OneToken(token, negated)
        self.at.place = end + 1
        if self.tokenize is None:
            raise self.at.error(f"names the token {text} but no vocabulary is loaded", begin)
        ids = self.tokenize(text)
        if len(ids) != 1:
            raise self.at.error(f"names {text}, which is not one token of this model", begin)
        return OneToken(ids[0], negated)


def _refuse_left_recursion(rules: Rules) -> None:
    """Raise GrammarError where a rule reaches itself before it has read anything."""
    begins = {name: leftmost(body, rules.nullable) for name, body in rules.bodies.items()}
    done: set[str] = set()
    for start in rules.bodies:
        path, waiting = dict[str, None](), [(start, iter(sorted(begins[start])))]
        path[start] = None
        while waiting:
            name, others = waiting[-1]
            other = next(others, None)
            if other is None:
                waiting.pop()
                path.pop(name)
                done.add(name)
            elif other in path:
                raise GrammarError(
                    f"The rule “{other}” can begin with itself (left recursion): write the"
                    " repetition with * or +, or put the recursion at the end."
                )
            elif other not in done:
                path[other] = None
                waiting.append((other, iter(sorted(begins[other]))))
