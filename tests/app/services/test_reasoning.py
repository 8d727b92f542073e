"""Thought and answer are told apart, however the stream cuts the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.reasoning import ReasoningStream, split_reasoning


def streamed(text, cuts):
    stream = ReasoningStream()
    thought = said = ""
    edges = [0, *sorted(c % (len(text) + 1) for c in cuts), len(text)]
    for start, end in zip(edges, edges[1:], strict=False):
        more_thought, more_said = stream.feed(text[start:end])
        thought, said = thought + more_thought, said + more_said
    more_thought, more_said = stream.finish()
    return thought + more_thought, said + more_said


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<think>\nHm.\n</think>\n\nTen.", "Hm.", "Ten."),
        ("\n<think>Hm.</think>Ten.", "Hm.", "Ten."),
        ("Ten.", "", "Ten."),
        ("<think>cut off in the mid", "cut off in the mid", ""),
        ("Hm, the template began.\n</think>\n\nTen.", "Hm, the template began.", "Ten."),
        ("A tag <think> inside a sentence", "", "A tag <think> inside a sentence"),
        ("<thin air>", "", "<thin air>"),
        ("", "", ""),
        ("  \n", "", "  \n"),
    ],
)
def test_whole_answers(text, thought, said):
    assert split_reasoning(text) == (thought, said)


@given(
    st.text(alphabet="ab<>/think \n", max_size=40),
    st.text(alphabet="ab<>/think \n", max_size=40),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_cuts_change_nothing(before, after, cuts):
    text = f"<think>{before}</think>{after}"
    assert streamed(text, cuts) == streamed(text, [])
    assert streamed(before + after, cuts) == streamed(before + after, [])


def test_the_marks_are_never_shown_half():
    stream = ReasoningStream()
    assert stream.feed("<thi") == ("", "")
    assert stream.feed("nk>Hm</th") == ("Hm", "")
    assert stream.is_thinking
    assert stream.feed("ink>\n\n") == ("", "")
    assert stream.feed("\nTen") == ("", "Ten") and not stream.is_thinking
