"""Tensors come in order, read ahead in a thread but not without end, and errors come at their step."""

import threading

import pytest
import torch

from colocam.data.batches import BatchIndices
from colocam.utils.prefetch import AHEAD, prefetch

CPU = torch.device("cpu")


def steps(count):
    return [(10 + i, BatchIndices(torch.tensor([i]), torch.tensor([2 * i]), torch.tensor([0]))) for i in range(count)]


def load(indices, step):
    return {"clips": indices.clips + 100, "step": torch.tensor(step)}


@pytest.mark.parametrize("count", [0, 1, AHEAD, AHEAD + 1, 20])
def test_every_step_comes_once_in_order_with_its_own_tensors(count):
    found = list(prefetch(steps(count), load, CPU))
    assert [step for step, _, _ in found] == list(range(10, 10 + count))
    for i, (step, indices, tensors) in enumerate(found):
        assert indices.clips.item() == i
        assert tensors["clips"].item() == 100 + i
        assert tensors["step"].item() == step


def test_reading_runs_ahead_in_another_thread_but_not_without_end():
    loaded = []

    def record(indices, step):
        loaded.append((step, threading.current_thread() is threading.main_thread()))
        return load(indices, step)

    taken = prefetch(steps(20), record, CPU)
    next(taken)
    taken.close()  # waits for the reader
    assert 1 <= len(loaded) <= AHEAD + 1
    assert not any(main for _, main in loaded)


def test_an_error_is_raised_at_its_step_and_the_steps_before_it_are_not_lost():
    def fails(indices, step):
        if step == 12:
            raise OSError("the cache is gone")
        return load(indices, step)

    seen = []
    with pytest.raises(OSError, match="the cache is gone"):
        seen.extend(step for step, _, _ in prefetch(steps(9), fails, CPU))
    assert seen == [10, 11]


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    taken = prefetch(steps(9), load, CPU)
    next(taken)
    with pytest.raises(ZeroDivisionError):
        taken.throw(ZeroDivisionError)
    assert not set(threading.enumerate()) - before
