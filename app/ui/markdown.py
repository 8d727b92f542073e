"""Markdown to blocks, incrementally: finished blocks are frozen, only the open end is read again.

A block is one paragraph, heading, list item's paragraph, code block, table or rule, with its
place (indent, quote depth, marker) written on it, so a long list is many small blocks. Raw HTML
is text, images are links, nothing is fetched.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from app.strings import tr
from app.ui.direction import by_direction

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# A last line that may still become something else ("-" could be a list, a heading or a rule).
_UNDECIDED = re.compile(r"(?:\A|\n)[ ]{0,3}(?:[-=*_+#>|]{1,6}|\d{1,9}[.)]?|[`~]{1,2})[ ]*\Z")
_OPEN_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\Z")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)\n", re.MULTILINE)
_TYPED_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)(?:^```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_TASK = re.compile(r"\[([ xX])\]\s+")
_SAFE_LINKS = ("http:", "https:", "mailto:", "#")


@dataclass(frozen=True)
class Block:
    """One piece of a message, ready to be laid out.

    Attributes:
        kind: "paragraph", "heading", "code", "table" or "rule".
        html: body in Qt's rich text subset; classes only, no colours (empty for code and rules).
        text: the code of a code block, without the fence.
        level: 1..6 of a heading.
        language: label of a code block as written.
        indent: how many lists it stands in.  quote: how many block quotes.
        marker: "•", "3." or a task box in front of the first block of a list item.
        tight: no space between it and the block above.
        closed: False while the end of the message may still change it.
    """

    kind: str
    html: str = ""
    text: str = ""
    level: int = 0
    language: str = ""
    indent: int = 0
    quote: int = 0
    marker: str = ""
    tight: bool = False
    closed: bool = True


@dataclass
class MarkdownStream:
    """A message as it grows: `frozen` blocks never change again, `open` ones are replaced.

    Attributes:
        frozen: blocks that are final, in order; only ever appended to.
        open: blocks of the open end, rebuilt by every `feed`.
        rest: source text that belongs to the open blocks.
    """

    frozen: list[Block] = field(default_factory=list)
    open: list[Block] = field(default_factory=list)
    rest: str = ""
    _fence: re.Match[str] | None = None
    _searched: int = 0
    _open_number: int | None = None

    def feed(self, text: str) -> None:
        """Append `text` to the message and bring the blocks up to date."""
        self.rest += text
        if self._fence is not None and not self._leave_fence():
            return
        self._read(finished=False)

    def finish(self) -> None:
        """Freeze everything: no more text will come."""
        self._fence = None
        self._read(finished=True)

    def blocks(self) -> list[Block]:
        """Return all blocks, frozen and open."""
        return self.frozen + self.open

    def _read(self, finished: bool) -> None:
        source = self.rest if finished else _calm(self.rest)
        tokens = _parser().parse(source)
        groups = _groups(tokens)
        _renumber(groups, self._open_number)
        n_final = len(groups) if finished else len(groups) - 1
        for i, group in enumerate(groups):
            blocks = _flatten(group)
            if i < n_final:
                self.frozen += blocks
            elif not finished:
                self._open(blocks, group)
        if finished or not groups:
            self.open = []
        if finished:
            self.rest = ""
        elif n_final > 0:
            first = groups[-1][0].map
            self._cut(first[0] if first else 0)

    def _open(self, blocks: list[Block], group: "list[Token]") -> None:
        """Show the last group; remember where an open fence starts, to append to it cheaply."""
        self.open = [replace(block, closed=False) for block in blocks]
        token = group[0]
        self._open_number = token.meta.get("number") if token.type == "list_item_open" else None
        if token.type == "fence" and token.map:
            line_start = _line_offset(self.rest, token.map[0])
            found = _FENCE.match(self.rest, line_start)
            if found and found.group(1)[0] == token.markup[0]:
                self._fence, self._searched = found, found.end()
                self._leave_fence()

    def _leave_fence(self) -> bool:
        """Take new text into the open fence; return True when a line closes it."""
        fence = self._fence
        if fence is None:
            return True
        mark = fence.group(1)
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        line_start = self.rest.rfind("\n", 0, max(self._searched, 1)) + 1
        if closing.search(self.rest, max(line_start, fence.end())):
            self._fence = None
            return True
        self._searched = len(self.rest)
        code = _without_marks(self.rest[fence.end() :], mark)
        language = fence.group(2).strip().split(" ")[0]
        self.open = [Block("code", text=code, language=language, closed=False)]
        return False

    def _cut(self, line: int) -> None:
        """Forget the source of frozen blocks: everything before `line` of the open end."""
        offset = _line_offset(self.rest, line)
        self.rest = self.rest[offset:]
        if self._fence is not None:
            self._fence = _FENCE.match(self.rest)
            self._searched = len(self.rest)


def parse(text: str) -> list[Block]:
    """Return the blocks of a finished message."""
    stream = MarkdownStream(rest=text)
    stream.finish()
    return stream.frozen


def plain_blocks(text: str) -> list[Block]:
    """Return what a person typed, as it was typed: only fenced code is set apart."""
    blocks: list[Block] = []
    language = ""
    for i, part in enumerate(_TYPED_FENCE.split(text)):
        if i % 3 == 1:
            language = part.strip()
        elif i % 3 == 2:
            blocks.append(Block("code", text=part.rstrip("\n"), language=language))
        elif part.strip():
            lines = [escape(x).replace("\n", "<br>") for x in by_direction(part.strip("\n"))]
            html = "".join(f'<p class="plain">{line}</p>' for line in lines)
            blocks.append(Block("paragraph", html=html))
    return blocks


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _calm(source: str) -> str:
    """Return the open end without what would flicker: undecided last lines, open emphasis."""
    source = _OPEN_LINK.sub(r"\1", _UNDECIDED.sub("", source))
    paragraph = source[source.rfind("\n\n") + 1 :]
    if "```" in paragraph or "~~~" in paragraph:
        return source
    if paragraph.count("`") % 2:
        return source + "`" if not source.endswith("`") else source[:-1]
    if paragraph.count("**") % 2:
        return source[:-2] if source.endswith("**") else source.rstrip("* ") + "**"
    return source


def _without_marks(code: str, mark: str) -> str:
    """Drop a last line that is about to close the fence."""
    last = code[code.rfind("\n") + 1 :].strip()
    if last and set(last) == {mark[0]}:
        code = code[: code.rfind("\n") + 1]
    return code[:-1] if code.endswith("\n") else code


def _line_offset(source: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = source.find("\n", offset) + 1
    return offset


def _groups(tokens: "list[Token]") -> "list[list[Token]]":
    """Split the token stream at top-level blocks and at the items of top-level lists."""
    groups: list[list[Token]] = []
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open") and token.level == 0:
            number = token.attrGet("start") if token.type == "ordered_list_open" else None
            ordered = token.type == "ordered_list_open"
            following = int(number) if number is not None else 1
        elif token.type in ("bullet_list_close", "ordered_list_close") and token.level == 0:
            continue
        elif token.type == "list_item_open" and token.level == 1:
            token.meta = {"number": following if ordered else None}
            following += 1
            groups.append([token])
        elif token.level == 0 and token.nesting >= 0:
            groups.append([token])
        else:
            groups[-1].append(token)
    return groups


def _renumber(groups: "list[list[Token]]", first: int | None) -> None:
    """Let the items at the start count from `first`: those before them are frozen already."""
    shift: int | None = None
    for group in groups:
        number = group[0].meta.get("number") if group[0].type == "list_item_open" else None
        if first is None or number is None:
            return
        shift = first - number if shift is None else shift
        group[0].meta["number"] = number + shift


def _flatten(group: "list[Token]") -> list[Block]:
    """Turn one group into blocks."""
    walk = _Walk()
    if group[0].type == "list_item_open":
        walk.lists.append(group[0].meta["number"])
    walk.read(group)
    return walk.blocks


@dataclass
class _Walk:
    """One pass over the tokens of a group, keeping the lists and quotes it stands in."""

    blocks: list[Block] = field(default_factory=list)
    lists: list[int | None] = field(default_factory=list)
    quote: int = 0
    marker: str = ""
    level: int = 0
    tight: bool = False
    cells: list[str] = field(default_factory=list)

    def read(self, tokens: "list[Token]") -> None:
        for token in tokens:
            step = getattr(self, f"_{token.type}", None)
            if step is not None:
                step(token)
            elif token.type in ("tr_open", "tr_close", "thead_open", "thead_close"):
                self.cells.append(f"<{'/' if token.nesting < 0 else ''}{token.tag}>")

    def _add(self, kind: str, **values: object) -> None:
        block = Block(kind, indent=len(self.lists), quote=self.quote, marker=self.marker)
        self.blocks.append(replace(block, tight=self.tight, **values))  # type: ignore[arg-type]
        self.marker = ""

    def _bullet_list_open(self, _: "Token") -> None:
        self.lists.append(None)

    def _ordered_list_open(self, token: "Token") -> None:
        start = token.attrGet("start")
        self.lists.append(int(start) if start is not None else 1)

    def _bullet_list_close(self, _: "Token") -> None:
        self.lists.pop()

    _ordered_list_close = _bullet_list_close

    def _list_item_open(self, _: "Token") -> None:
        number = self.lists[-1]
        self.marker = "•" if number is None else f"{number}."
        if number is not None:
            self.lists[-1] = number + 1

    def _list_item_close(self, _: "Token") -> None:
        if self.marker:
            self._add("paragraph", html="<p></p>")

    def _blockquote_open(self, _: "Token") -> None:
        self.quote += 1

    def _blockquote_close(self, _: "Token") -> None:
        self.quote -= 1

    def _paragraph_open(self, token: "Token") -> None:
        self.tight = bool(token.hidden)

    def _heading_open(self, token: "Token") -> None:
        self.level, self.tight = int(token.tag[1]), False

    def _heading_close(self, _: "Token") -> None:
        self.level = 0

    def _hr(self, _: "Token") -> None:
        self._add("rule")

    def _fence(self, token: "Token") -> None:
        self.tight = False
        language = token.info.strip().split(" ")[0]
        self._add("code", text=token.content.rstrip("\n"), language=language)

    def _code_block(self, token: "Token") -> None:
        self.tight = False
        self._add("code", text=token.content.rstrip("\n"))

    def _inline(self, token: "Token") -> None:
        if self.cells:
            self.cells.append(_inline_html(token))
            return
        task = _TASK.match(token.content) if self.marker == "•" else None
        if task:
            self.marker = "☐" if task.group(1) == " " else "☑"
            token.children = _parser().parseInline(token.content[task.end() :])[0].children
        body = _inline_html(token)
        if self.level:
            self._add("heading", html=f"<p>{body}</p>", level=self.level)
        else:
            self._add("paragraph", html=f"<p>{body}</p>")

    def _table_open(self, _: "Token") -> None:
        self.cells = ['<table cellspacing="0" cellpadding="7" border="0">']

    def _th_open(self, token: "Token") -> None:
        style = str(token.attrGet("style") or "")
        align = next((side for side in ("center", "right") if side in style), "left")
        self.cells.append(f'<{token.tag} align="{align}">')

    _td_open = _th_open

    def _th_close(self, token: "Token") -> None:
        self.cells.append(f"</{token.tag}>")

    _td_close = _th_close

    def _table_close(self, _: "Token") -> None:
        html = "".join(self.cells) + "</table>"
        self.cells, self.tight = [], False
        self._add("table", html=html)


_PAIRS = {"strong": "b", "em": "i", "s": "s"}


def _inline_html(token: "Token") -> str:
    """Render the children of an inline token; links keep their address, images become links."""
    out: list[str] = []
    for child in token.children or []:
        kind = child.type
        if kind == "text":
            out.append(escape(child.content, quote=False))
        elif kind == "code_inline":
            out.append(f"<code>{escape(child.content)}</code>")
        elif kind in ("softbreak", "hardbreak"):
            out.append("<br>")
        elif kind == "link_open":
            address = str(child.attrGet("href") or "")
            safe = address.lower().startswith(_SAFE_LINKS)
            out.append(f'<a href="{escape(address)}">' if safe else "<a>")
        elif kind == "link_close":
            out.append("</a>")
        elif kind == "image":
            out.append(_image(child))
        else:
            name = kind.rsplit("_", 1)[0]
            if name in _PAIRS:
                out.append(f"<{'/' if child.nesting < 0 else ''}{_PAIRS[name]}>")
    return "".join(out)


def _image(token: "Token") -> str:
    """An image is never loaded: its description links to its address."""
    address = str(token.attrGet("src") or "")
    label = escape(tr("Image: {name}", name=token.content or address))
    if address.lower().startswith(("http:", "https:")):
        return f'<a href="{escape(address)}">{label}</a>'
    return label
