"""After each test of the engine the books of every memory agree, without a test asking for it."""

import pytest

from tests.make.books import whole_books as whole_books


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of tests that break books on purpose."""
    config.addinivalue_line("markers", "broken_books: the test breaks the books of a memory")
