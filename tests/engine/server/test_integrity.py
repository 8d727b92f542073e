"""Broken books are found: by the engine when it is idle, and after every test by its fixture."""

import time

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import InternalError
from engine.server.loop import Keeping
from tests.fakes.model import BOS, EOS, chaotic, loaded
from tests.fakes.paged import PagedContext
from tests.make.books import check_books

SAID = [BOS, *range(100)]


def restless(tokens):
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


def ask(client, prompt):
    request = engine.CompletionRequest(prompt, temperature=0, n_predict=5)
    return client.submit(request).result()


def used_list(memory):
    return next(lists[0] for lists in memory.lists if lists[0].n_pages)


def lose_a_reference(memory):
    memory.pools[0].references[used_list(memory).pages[0]] += 1


def repeat_a_position(memory):
    memory.pools[0].positions[used_list(memory).pages[0], 3] = 90


def fill_a_free_page(memory):
    memory.pools[0].positions[-1, 0] = 5


def miscount(memory):
    used_list(memory).n_cells -= 1


HARMS = [lose_a_reference, repeat_a_position, fill_a_free_page, miscount]


@pytest.mark.broken_books
@pytest.mark.parametrize("harm", HARMS)
def test_an_idle_engine_finds_its_books_broken_and_forgets(harm, whole_books):
    context = PagedContext(restless, 1024, 3, snapshot_bytes=1 << 20)
    model = loaded(None, context=context, forks=(2,), n_ctx=1024)
    keeping = Keeping(1 << 20)
    with EngineClient.over(lambda progress: model, 2, keeping=keeping) as client:
        first = ask(client, SAID)
        assert whole_books.reports == []
        harm(context.memory)
        ask(client, [BOS, *range(50, 90)])
        until = time.monotonic() + 10
        while not whole_books.reports:
            assert time.monotonic() < until, "nobody noticed"
            time.sleep(0.002)
        again = ask(client, SAID)
        assert again.tokens == first.tokens
        assert again.timings.n_cached <= 1  # the books may have been begun anew before it already
        assert ask(client, SAID).timings.n_read == 0
    context.memory.check_integrity()
    assert len(whole_books.reports) == 1


@pytest.mark.broken_books
def test_they_are_found_after_a_task_that_keeps_nobody_busy_too(whole_books):
    context = PagedContext(restless, 1024, 3)
    model = loaded(None, context=context, forks=(2,), n_ctx=1024)
    with EngineClient.over(lambda progress: model, 2) as client:
        first = ask(client, SAID)
        lose_a_reference(context.memory)
        client.erase_slot(1 - first.id_slot)
        until = time.monotonic() + 10
        while not whole_books.reports:
            assert time.monotonic() < until, "nobody noticed"
            time.sleep(0.002)


@pytest.mark.broken_books
@pytest.mark.parametrize("harm", HARMS)
def test_the_fixture_finds_them_too(harm):
    context = PagedContext(restless, 1024, 3)
    context.decode(SAID, list(range(101)), [0] * 101, want=[])
    check_books([context.memory], [], [])
    harm(context.memory)
    with pytest.raises(InternalError):
        check_books([context.memory], [], [])


@pytest.mark.broken_books
def test_what_an_engine_reported_fails_its_test():
    with pytest.raises(AssertionError, match="found its memory broken"):
        check_books([], [], ["the memory contradicts itself"])
