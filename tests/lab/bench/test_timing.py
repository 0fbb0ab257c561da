"""How often a call is repeated, by a clock that the call itself moves on."""

import pytest
import torch

from lab import measuring as timing

CPU = torch.device("cpu")


class Clock:
    """Stands still but for the calls."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.mark.parametrize(
    ("seconds", "repeats", "calls"),
    [
        (0.001, 20, 3 + 20),
        (0.001, 2, 3 + 2),
        (5.0, 20, 3 + 4),  # after 20 s it is enough
        (60.0, 20, 3 + 3),  # but never with fewer than three
        (60.0, 2, 3 + 2),
    ],
)
def test_long_calls_are_repeated_less_often(monkeypatch, seconds, repeats, calls):
    clock, seen = Clock(), []
    monkeypatch.setattr(timing, "time", clock)

    def call(i):
        seen.append(i)
        clock.now += seconds

    assert timing.median_ms(call, CPU, repeats) == pytest.approx(1e3 * seconds)
    assert len(seen) == calls


def test_the_median_of_each_call_when_they_take_turns(monkeypatch):
    clock, order = Clock(), []
    monkeypatch.setattr(timing, "time", clock)

    def taking(name, times):
        def call(i):
            order.append((name, i))
            clock.now += times[i % len(times)]

        return call

    first, second = timing.in_turn_ms([taking("a", [0.001, 0.009, 0.002]), taking("b", [0.005])], CPU, 3)
    assert (first, second) == pytest.approx((2.0, 5.0))
    assert order[6:] == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
