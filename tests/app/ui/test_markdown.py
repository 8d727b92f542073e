"""Markdown in frozen blocks: the same as when read at once, and never more than text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ui.markdown import MarkdownStream, parse, plain_blocks

SAMPLE = """# Title

Some **bold**, *slanted* and `code` text
on two lines.

- a
- b
  1. x
  2. y

     ```py
     z = 1
     ```
- [x] done
- [ ] open

1. one
1. two

> quote
> - in list

| a | b |
|---|--:|
| 1 | 2 |

```python
def f():
    return 1
```
after

***
end ~~gone~~ [link](https://example.org)"""
PIECES = st.sampled_from(
    ["- item\n", "1. one\n", "word ", "\n", "\n\n", "**", "`", "```", "```py\n", "> ", "#", " ",
     "| a | b |\n", "|---|---|\n", "    code\n", "<b>", "[x](", ")", "é漢"]
)  # fmt: skip


def streamed(pieces):
    stream = MarkdownStream()
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream.frozen


def test_streaming_letter_by_letter_ends_like_reading_at_once():
    assert streamed(SAMPLE) == parse(SAMPLE)


def test_kinds_marks_and_places():
    blocks = parse(SAMPLE)
    kinds = [block.kind for block in blocks]
    assert kinds.count("code") == 2 and kinds.count("table") == 1 and kinds.count("rule") == 1
    assert blocks[0].kind == "heading" and blocks[0].level == 1
    markers = [block.marker for block in blocks if block.marker]
    assert markers == ["•", "•", "1.", "2.", "☑", "☐", "1.", "2.", "•"]
    code = next(block for block in blocks if block.kind == "code")
    assert code.text == "z = 1" and code.language == "py" and code.indent == 2
    assert any(block.quote and block.indent for block in blocks)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=40))
def test_any_stream_keeps_every_letter_of_its_code_and_words(pieces):
    """Freezing may change how a stream of fragments is grouped, never what it says."""

    def letters(blocks):
        text = "".join(block.html + block.text for block in blocks)
        return sum(text.count(word) for word in ("word", "item", "one", "code\n", "漢"))

    assert letters(streamed(pieces)) == letters(parse("".join(pieces)))


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_frozen_blocks_never_change(pieces):
    stream = MarkdownStream()
    seen = []
    for piece in pieces:
        stream.feed(piece)
        assert stream.frozen[: len(seen)] == seen
        seen = list(stream.frozen)


def test_raw_html_is_text_and_images_are_never_loaded():
    html = parse("<script>x</script> <b>raw</b>\n\n![pic](https://example.org/a.png)")
    text = "".join(block.html for block in html)
    assert "&lt;b&gt;" in text and "<script" not in text and "<img" not in text
    assert 'href="https://example.org/a.png"' in text


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"]
)
def test_only_web_and_mail_addresses_are_links(address):
    assert "href" not in parse(f"[x]({address})")[0].html


def test_an_open_fence_is_code_at_once_and_costs_only_what_is_new():
    stream = MarkdownStream()
    stream.feed("Look:\n\n```python\nx = 1\n")
    assert [block.kind for block in stream.blocks()] == ["paragraph", "code"]
    assert stream.open[0].text == "x = 1" and not stream.open[0].closed
    stream.feed("y = 2\n``")
    assert stream.open[0].text == "x = 1\ny = 2"
    stream.feed("`\nafter")
    assert [block.kind for block in stream.blocks()] == ["paragraph", "code", "paragraph"]


def test_half_written_marks_do_not_flicker():
    stream = MarkdownStream()
    stream.feed("A **bold")
    assert "<b>bold</b>" in stream.open[0].html
    stream.feed("** word\n-")
    assert stream.open[-1].kind == "paragraph"
    stream.feed(" item")
    assert stream.open[-1].marker == "•"
    link = MarkdownStream()
    link.feed("see [the page](https://exam")
    assert link.open[0].html == "<p>see the page</p>"


def test_numbers_go_on_when_earlier_items_are_frozen():
    text = "".join("1. step\n" for _ in range(12))
    assert [block.marker for block in streamed(text)] == [f"{n}." for n in range(1, 13)]


def test_what_a_person_typed_stays_as_typed():
    blocks = plain_blocks("# not a title\n  indented <b>\n```c\nint x;\n```\nafter")
    assert [block.kind for block in blocks] == ["paragraph", "code", "paragraph"]
    assert "# not a title<br>  indented &lt;b&gt;" in blocks[0].html
    assert blocks[1].text == "int x;" and blocks[1].language == "c"
