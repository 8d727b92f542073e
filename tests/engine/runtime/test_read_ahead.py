"""What is asked to be read ahead: whole pages, neighbours in one, nothing between two files."""

import mmap

from engine.runtime.read_ahead import joined

PAGE = mmap.PAGESIZE


def test_neighbours_are_asked_for_in_one():
    spans = [(10 * PAGE + 64, 11 * PAGE + 7), (11 * PAGE + 32, 13 * PAGE), (13 * PAGE, 14 * PAGE)]
    assert list(joined(spans)) == [(10 * PAGE, 14 * PAGE)]


def test_files_apart_stay_apart():
    spans = [(10 * PAGE, 11 * PAGE), (11 * PAGE + 5, 12 * PAGE - 5), (20 * PAGE + 1, 20 * PAGE + 2)]
    assert list(joined(spans)) == [(10 * PAGE, 12 * PAGE - 5), (20 * PAGE, 20 * PAGE + 2)]


def test_one_inside_another_adds_nothing():
    assert list(joined([(PAGE, 5 * PAGE), (2 * PAGE, 3 * PAGE)])) == [(PAGE, 5 * PAGE)]
    assert list(joined([])) == []
