"""Prefetching: every item once and in order, a bounded number ahead, errors at their item, no thread left behind."""

import threading
from contextlib import closing

import pytest
import torch

from colocam.data.batches import BatchIndices
from colocam.utils.prefetch import STEPS_AHEAD, ahead, prefetch

CPU = torch.device("cpu")


def steps(count):
    return [(10 + i, BatchIndices(torch.tensor([i]), torch.tensor([2 * i]), torch.tensor([0]))) for i in range(count)]


def load(indices, step):
    return {"clips": indices.clips + 100, "step": torch.tensor(step)}


@pytest.mark.parametrize("count", [0, 1, STEPS_AHEAD, STEPS_AHEAD + 1, 20])
def test_every_step_comes_once_in_order_with_its_own_tensors(count):
    found = list(prefetch(steps(count), load, CPU))
    assert [step for step, _, _ in found] == list(range(10, 10 + count))
    for i, (step, indices, tensors) in enumerate(found):
        assert indices.clips.item() == i
        assert tensors["clips"].item() == 100 + i
        assert tensors["step"].item() == step


def threads():
    return [one.name for one in threading.enumerate()]


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("size", [1, 3])
def test_every_item_once_in_order(count, size):
    before = threads()
    assert list(ahead(iter(range(count)), size, "numbers")) == list(range(count))
    assert list(ahead((n * n for n in range(count)), size, "squares")) == [n * n for n in range(count)]
    assert threads() == before


@pytest.mark.parametrize("size", [1, 2, 5])
def test_no_more_is_made_than_there_is_room_for(size):
    """The stage stops at the item for which there is no room: one taken, ``size`` waiting, one in hand."""
    made, full = [], threading.Event()

    def stage():
        for number in range(100):
            made.append(number)
            if number == size + 1:
                full.set()
            yield number

    with closing(ahead(stage(), size, "numbers")) as items:
        assert next(items) == 0
        full.wait()
        assert len(made) == size + 2
        assert next(items) == 1
    assert len(made) <= size + 4


def test_an_item_is_handed_on_before_the_next_is_begun():
    """The second item is made only after the first has been received: a camera's frame waits for no other."""
    received = threading.Event()

    def stage():
        yield "first"
        received.wait()
        yield "second"

    items = ahead(ahead(stage(), 1, "inner"), 1, "outer")
    assert next(items) == "first"
    received.set()
    assert list(items) == ["second"]


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, SystemExit])
def test_an_error_comes_after_the_items_before_it(kind):
    def stage():
        yield from (1, 2, 3)
        raise kind

    before = threads()
    items = ahead((n for n in ahead(stage(), 1, "inner")), 1, "outer")
    assert [next(items) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(kind):
        next(items)
    assert threads() == before


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_closing_ends_all_threads_and_closes_all_stages(taken):
    closed = []

    def numbers():
        try:
            yield from range(10**9)
        finally:
            closed.append("numbers")

    def doubled(items):
        with closing(items):
            for item in items:
                yield 2 * item

    before = threads()
    items = ahead(doubled(ahead(numbers(), 2, "inner")), 2, "outer")
    assert [next(items) for _ in range(taken)] == [0, 2, 4][:taken]
    items.close()
    assert threads() == before
    assert closed == (["numbers"] if taken else [])
