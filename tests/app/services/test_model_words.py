"""What a model is called, and sizes in one convention."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from app.services.figures import summary
from app.services.model_words import display_name, model_title
from app.strings import megabytes
from app.ui.widgets.model_panel import fact_rows


@pytest.mark.parametrize(
    ("stem", "stated", "title"),
    [
        ("SmolLM2-135M-Instruct.Q4_1", "Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2 135M Instruct"),
        ("gemma3", "Gemma 3 270m", "Gemma 3 270m"),
        ("smollm2", "Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2"),
        ("sha256-0123abcd", "Llama 3.2 1B", "Llama 3.2 1B"),
        ("sha256-0123abcd", "", "sha256 0123abcd"),
        ("Q4_0", "Llama 3.2 1B", "Llama 3.2 1B"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M", "Meta Llama", "Meta Llama 3.1 8B Instruct"),
        ("größe_модель", "x", "größe модель"),
    ],
)
def test_titles(stem, stated, title):
    assert model_title(stem, stated) == title


def test_the_file_type_goes_before_what_most_tensors_are():
    facts = SimpleNamespace(name="Gemma 3 270m", file_type="Q4_K_M", quantizations={"Q5_0": 81})
    assert display_name(Path("gemma3.gguf"), facts) == "Gemma 3 270m · Q4_K_M"
    silent = SimpleNamespace(name="", file_type="", quantizations={"Q5_0": 81, "F32": 100})
    assert display_name(Path("a.gguf"), silent) == "a · Q5_0"
    assert display_name(Path("b-1B-q8_0.gguf")) == "b 1B · Q8_0"


def test_sizes_are_decimal():
    sizes = (0, 1, 98_362_432, 999_499_999, 999_500_000, 4_700_000_000)
    assert [megabytes(n) for n in sizes] == ["0 MB", "1 MB", "98 MB", "999 MB", "1.0 GB", "4.7 GB"]


def test_the_short_line_says_what_was_read():
    timings = {"n_generated": 52, "generate_tps": 38.9, "n_cached": 120, "n_read": 1}
    assert summary({"timings": timings}) == "52 tokens · 38.9/s · 0 re-read"
    asked = timings | {"n_read": 45}
    assert summary({"timings": asked}) == "52 tokens · 38.9/s · 45 read"
    assert summary({"timings": asked, "n_reread": 7}) == "52 tokens · 38.9/s · 45 read"
    known = summary({"timings": asked, "n_reread": 0})
    assert known == "52 tokens · 38.9/s · 45 read, 0 re-read"


def test_the_panel_says_whose_chat_template_is_used():
    own = dict(
        fact_rows(None, SimpleNamespace(arch="llama", quantizations={}, chat_template="{{ x }}"))
    )
    none = dict(
        fact_rows(None, SimpleNamespace(arch="gemma3", quantizations={}, chat_template=None))
    )
    assert own["Chat template"] == "its own"
    assert "has none" in none["Chat template"]
