"""The coordinator against a pool that follows a script: no processes, no clock."""

from collections import Counter, deque
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.corpus.coordinator import MOST_STARTS, Coordinator, Limits
from colocam.corpus.films import Film
from colocam.corpus.items import Died, Done, Failed, FrameRange, Item, Known, Progress, Ready, Split, Stop
from colocam.errors import ColocamError

FILMS = [Item(Film(name, Path(name))) for name in "abcdefgh"]


class Script:
    """A pool whose workers answer an item with the messages that ``answer(item)`` gives; none: it is stuck."""

    def __init__(self, answer, ready=Ready):
        self.answer, self.ready = answer, ready
        self.now, self.told, self.given, self.ended = 0.0, deque(), [], 0

    def start(self, worker):
        self.told.append((worker, self.ready()))

    def submit(self, worker, item):
        self.given.append(item)
        self.told.extend((worker, message) for message in self.answer(item))

    def wait(self, seconds):
        told, self.told = list(self.told), deque()
        self.now += 0 if told else seconds
        return told

    def end(self, worker):
        assert not any(index == worker for index, _ in self.told)
        self.ended += 1


class Outcome:
    """What a coordinator told of."""

    def __init__(self, pool, items=FILMS, workers=2, seconds=10.0, retries=2):
        self.done, self.failed, self.frames = [], {}, 0
        coordinator = Coordinator(
            pool,
            workers,
            Limits(seconds, retries),
            on_frames=self.count,
            on_done=lambda item, _: self.done.append(item.name),
            on_failed=lambda item, key, reason, attempts: self.failed.update({item.film.name: (key, reason, attempts)}),
            clock=lambda: pool.now,
        )
        coordinator.run(items)

    def count(self, frames):
        self.frames += frames


def test_all_is_done_once():
    pool = Script(lambda _: [Known("k"), Progress(3), Progress(2), Done("k")])
    outcome = Outcome(pool)
    assert sorted(outcome.done) == list("abcdefgh")
    assert len(pool.given) == 8
    assert outcome.frames == 40
    assert outcome.failed == {}


def test_a_film_that_kills_its_worker_is_set_aside_and_the_others_are_done():
    pool = Script(lambda item: [Known("k-" + item.name), Died("SIGSEGV")] if item.name == "c" else [Done("k")])
    outcome = Outcome(pool)
    assert sorted(outcome.done) == list("abdefgh")
    assert outcome.failed == {"c": ("k-c", "SIGSEGV", 3)}


def test_a_stuck_film_costs_its_limit_at_each_attempt():
    pool = Script(lambda item: [] if item.name == "c" else [Done("k")])
    outcome = Outcome(pool, retries=1)
    assert sorted(outcome.done) == list("abdefgh")
    assert outcome.failed["c"] == ("", "no progress for 10 s", 2)
    assert pool.ended == 2
    assert 20 < pool.now < 25


def test_progress_keeps_a_slow_film_alive():
    pool = Script(lambda _: [])
    told = [(0, Progress(1))] * 40 + [(0, Done("k"))]
    plain = pool.wait

    def wait(seconds):
        if messages := plain(seconds):
            return messages
        pool.now += 9 - seconds
        return [told.pop(0)]

    pool.wait = wait
    assert Outcome(pool, FILMS[:1], workers=1).done == ["a"]
    assert pool.ended == 0


def test_an_unreadable_film_is_tried_once():
    outcome = Outcome(Script(lambda item: [Failed("cannot read", again=item.name != "a")]), FILMS[:2])
    assert outcome.failed == {"a": ("", "cannot read", 1), "b": ("", "cannot read", 3)}


def test_a_full_disk_stops_the_command():
    with pytest.raises(ColocamError, match="the disk is full"):
        Outcome(Script(lambda _: [Stop("the disk is full")]))


def test_workers_that_never_start_stop_the_command():
    starts = []
    pool = Script(lambda _: [], ready=lambda: starts.append(1) or Died("exit code 1"))
    with pytest.raises(ColocamError, match=f"{MOST_STARTS} workers ended before .*: exit code 1"):
        Outcome(pool)
    assert len(starts) < 2 * MOST_STARTS


RANGES = tuple(FrameRange(at, at + 10, at, at + 10) for at in (0, 10, 20))


def test_ranges_of_a_long_film_are_joined():
    labelled = []

    def answer(item):
        if item.range is not None:
            labelled.append(item.range)
            return [Done("k")]
        return [Done("k") if len(labelled) == 3 or item.name != "b" else Split(RANGES)]

    outcome = Outcome(Script(answer), FILMS[:3])
    assert sorted(outcome.done) == ["a", "b", "c"]
    assert sorted(labelled) == list(RANGES)


def test_a_range_that_cannot_be_labelled_sets_its_film_aside():
    def answer(item):
        if item.range is None:
            return [Split(RANGES) if item.name == "b" else Done("k")]
        return [Died("SIGKILL") if item.range == RANGES[1] else Done("k")]

    outcome = Outcome(Script(answer), FILMS[:3])
    assert sorted(outcome.done) == ["a", "c"]
    assert outcome.failed == {"b": ("", "SIGKILL", 3)}


@given(st.integers(0, 10**6))
def test_random_faults(seed):
    """Whatever happens, each film is either done once or set aside after all its attempts."""
    random, attempts = Random(seed), Counter()

    def answer(item):
        attempts[item.name] += 1
        return random.choice(([Done("k")], [Done("k")], [Progress(1), Died("x")], [], [Failed("y", again=True)]))

    outcome = Outcome(Script(answer), workers=random.randint(1, 4), retries=1)
    assert sorted([*outcome.done, *outcome.failed]) == list("abcdefgh")
    assert all(attempts[name] == 2 for name in outcome.failed)
