"""After each test the books of every memory agree."""

from tests.make.books import whole_books as whole_books
