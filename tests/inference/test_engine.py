"""Many videos at once: the same bytes whatever the number of workers and kills; nothing mixed, nothing left behind."""

import os
import random
import signal
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.inference.engine import Here, Model, Workers
from colocam.inference.localize import localize_videos
from colocam.inference.localizer import Localizer, open_network
from colocam.inference.network import NetworkOutput, OutputShape, PostProcessing, completed
from colocam.inference.passes import GROUP, Passes
from colocam.inference.results import Tables, Writing
from colocam.inference.task import LocalizeVideo, LostError, Worker, do_all
from colocam.inference.videos import find_videos
from colocam.video.frame_choice import ALL
from colocam.video.input import UnreadableError
from tests.helpers.child_processes import children
from tests.helpers.one_pass import ids_of
from tests.helpers.stub_task import StubTask

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
LENGTHS = {"a": 3, "b": 45, "c": 16, "d": 33}


@pytest.fixture
def videos(tmp_path, make_video, square_video):
    """Videos of other lengths than a pass or a window, one of them with a cut, and a file that is no video."""
    (tmp_path / "videos").mkdir()
    for tag, (name, length) in zip(("cat", "owl", "bus", "cat"), LENGTHS.items(), strict=True):
        frames = square_video(tag, length, length)[0]
        frames = [*frames[:20], *(255 - frame for frame in frames[20:])]
        make_video(tmp_path / "videos" / f"{name}.mp4", frames)
    (tmp_path / "videos" / "broken.mp4").write_bytes(b"not a video")
    return tmp_path / "videos"


def results_of(folder):
    """Tables and annotated videos by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in {".csv", ".mp4"}}


def workers():
    return children("worker_process")


def localize(model, videos, out, count, killed=0, **writing):
    for number, _ in enumerate(localize_videos(STORED / model, [videos], out, Writing(**writing), workers=count)):
        if number < killed:
            os.kill(workers()[0], signal.SIGKILL)


@pytest.mark.parametrize(("model", "count", "killed", "annotate"), [("model.onnx", 3, 1, True), ("run", 2, 0, False)])
def test_results_are_the_same_for_any_number_of_workers_and_after_kills(
    videos, tmp_path, capsys, model, count, killed, annotate
):
    left_out = "1 of 5 videos cannot be read, see the warnings; the others are done"
    with pytest.raises(ColocamError, match=left_out):
        localize(model, videos, tmp_path / "alone", 1, annotate=annotate)
    assert capsys.readouterr().err.count("broken.mp4: not a complete video file") == 1
    with pytest.raises(ColocamError, match=left_out):
        localize(model, videos, tmp_path / "many", count, killed=killed, annotate=annotate)
    said = capsys.readouterr().err
    assert said.count("broken.mp4: not a complete video file") == 1
    assert [line for line in said.splitlines() if "localizing 5 videos: " in line][-1].endswith("5 of 5 videos done")
    alone = results_of(tmp_path / "alone")
    assert len(alone) == len(LENGTHS) * (2 if annotate else 1)
    assert results_of(tmp_path / "many") == alone
    assert workers() == []
    assert not list((tmp_path / "many").glob(".*"))


def test_who_stops_early_leaves_neither_processes_nor_temporary_files(videos, tmp_path):
    threads = set(threading.enumerate())
    stream = localize_videos(STORED / "model.onnx", [videos], tmp_path / "out", Writing(annotate=False), workers=2)
    next(stream)
    assert len(workers()) == 2
    stream.close()
    assert workers() == []
    assert not list((tmp_path / "out").glob(".*"))
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)  # it was told to end
        assert not thread.is_alive(), thread.name


# a network that takes its time, and returns a function of its input


class Dawdling:
    """Stands in for a recorded pass: one buffer for inputs and one for outputs, and a device that takes its time.

    The map of a frame is its brightness; its class depends on its mean.
    """

    rows, on_gpu = 4 * GROUP, True

    def __init__(self, card):
        self.card, self.owner = card, None
        side = card.size
        self.images, self.ids = np.zeros((self.rows, side, side, 3), np.uint8), np.zeros((self.rows, 2), np.int64)

    def settle(self):
        time.sleep(random.random() / 500)

    def submit(self, images, ids):
        self.owner = self.owner or threading.get_ident()
        assert self.owner == threading.get_ident()
        np.concatenate(images, out=self.images[: sum(map(len, images))])
        self.ids[:] = ids
        time.sleep(random.random() / 500)
        maps = self.images.mean(3, dtype=np.float32) / 255
        logits = np.stack([np.sin(number + 40 * maps.mean((1, 2))) for number in range(len(self.card.tags))], 1)
        time.sleep(random.random() / 500)
        activations = np.repeat(maps[:, None, ::4, ::4], len(self.card.tags), 1)
        parts = (logits.astype(np.float32), maps, logits.astype(np.float32), activations, self.images, self.ids)
        return completed(NetworkOutput(*(part.copy() for part in parts)))


@pytest.fixture(scope="module")
def many_videos(make_video, tmp_path_factory):
    """200 videos of 2 to 9 frames."""
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(0)
    for number in range(200):
        frames = np.repeat(rng.integers(0, 256, (2 + number % 8, 3, 4, 3)).astype(np.uint8), 8, 1).repeat(8, 2)
        make_video(folder / f"{number}.mp4", frames)
    return folder


def test_200_videos_around_one_network_have_the_rows_of_each_alone(many_videos, tmp_path):
    model = Model(STORED / "model.onnx")
    _, card = open_network(model.run)
    localizer = Localizer(Dawdling(card), card)

    def done(pool, out):
        sink, key = Tables(out, Writing(annotate=False)), model.key(ALL)
        tasks = deque(LocalizeVideo(video, sink, key) for video in find_videos([many_videos], out))
        assert all(outcome.error is None for _, outcome in do_all(pool, tasks))
        return results_of(out)

    with closing(Workers(8)) as pool:
        pool.open([localizer], [], None, 8)
        many = done(pool, tmp_path / "many")
    alone = done(Here(Worker(Localizer(Dawdling(card), card))), tmp_path / "alone")
    assert len(alone) == 200
    assert many == alone
    assert len(set(alone.values())) > 95


def test_python_threads_that_share_a_localizer_get_their_own_rows(many_videos):
    _, card = open_network(STORED / "model.onnx")
    localizer = Localizer(Dawdling(card), card)
    videos = sorted(many_videos.iterdir())[:16]

    def rows(video):
        return [(found.frame, found.tag, found.probability, found.box) for found in localizer(video)]

    alone = [rows(video) for video in videos]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(rows, videos)) == alone


class Mixing(Dawdling):
    """Returns the rows of the pass before, as a network would whose buffers two threads share."""

    def submit(self, images, ids):
        output = super().submit(images, ids).result()
        before, self.before = getattr(self, "before", None), output
        return completed(output if before is None else before)


def test_rows_of_another_video_are_noticed(many_videos):
    _, card = open_network(STORED / "model.onnx")
    localizer = Localizer(Mixing(card), card)
    with pytest.raises(ColocamError, match="rows of another video"):
        list(localizer(min(many_videos.iterdir())))


# groups of several videos in one pass


class Rows:
    """A network whose outputs are means of the images; ``uneven`` adds the row, as rounding might."""

    on_gpu = True

    def __init__(self, rows, *, uneven=False):
        self.rows, self.uneven, self.passes = rows, uneven, []
        self.ready = threading.Event()
        self.ready.set()

    def settle(self):
        assert self.ready.wait(60)

    def submit(self, images, ids):
        images = np.concatenate(images)
        images = np.concatenate([images, np.zeros((len(ids) - len(images), 8, 8, 3), np.uint8)])
        self.passes.append(images)
        means = images.mean((1, 2, 3), dtype=np.float64).astype(np.float32)
        means = means + np.arange(len(images), dtype=np.float32) if self.uneven else means
        maps = np.broadcast_to(means[:, None, None] / 1000, (len(images), 4, 4)).astype(np.float32)
        return completed(NetworkOutput(means[:, None], maps, means[:, None], maps[:, None], images, ids))


SMALL = OutputShape(1, 8, 4)


def logits_of(passes, rows):
    return passes.postprocess([rows], PostProcessing())().logits[:, 0]


@pytest.mark.parametrize("uneven", [False, True])
def test_groups_of_several_videos_share_passes_where_rows_are_alike(uneven):
    network = Rows(4 * GROUP, uneven=uneven)
    passes = Passes(network, SMALL)
    images = np.random.default_rng(0).integers(0, 256, (9, 4 * GROUP, 8, 8, 3), np.uint8)

    def ask(own):
        return passes.submit(own, ids_of(own), slice(0, GROUP))

    with ThreadPoolExecutor(9) as pool:
        futures = list(pool.map(ask, images))
    for own, rows in zip(images, futures, strict=True):
        np.testing.assert_array_equal(logits_of(passes, rows), expected(own[:GROUP], uneven=uneven))
    assert {len(one) for one in network.passes} == {4 * GROUP}
    assert len(network.passes) == 10 if uneven else len(network.passes) <= 10


def expected(images, *, uneven):
    means = images.mean((1, 2, 3), dtype=np.float64).astype(np.float32)
    return means + np.arange(len(images), dtype=np.float32) if uneven else means


# tasks that fail


GOOD = {"once": "once", **{f"good-{index}": f"video {index}" for index in range(4)}}
BAD = {
    "killed": "signal SIGKILL",
    "crash": "signal SIGSEGV",
    "exit": "exit",
    "hang": "hang",
    "unreadable": "unreadable",
    "bug": "bug",
}


@pytest.fixture
def pool():
    """Two workers around a model, which give up after four seconds without progress."""
    network, card = open_network(STORED / "model.onnx")
    with closing(Workers(2, limit=4.0)) as pool:
        pool.open([Localizer(network, card)], [], None, 2)
        yield pool


def test_tasks_that_end_their_worker_cost_only_themselves(pool, tmp_path):
    tasks = deque(StubTask(name, words, tmp_path) for name, words in (GOOD | BAD).items())
    outcomes = {task.name: outcome for task, outcome in do_all(pool, tasks, retries=1)}
    assert {name for name, outcome in outcomes.items() if outcome.error is None} == GOOD.keys()
    assert {name: (tmp_path / name).read_text(encoding="ascii") for name in GOOD} == {
        name: words.upper() for name, words in GOOD.items()
    }
    told = {name: str(outcomes[name].error) for name in BAD}
    assert told["killed"] == "its worker crashed (signal SIGKILL)"
    assert told["crash"] == "its worker crashed (signal SIGSEGV)"
    assert told["exit"] == "its worker crashed (exit code 7)"
    assert told["hang"] == "no progress for 4 s"
    assert told["unreadable"] == "cannot read it"
    assert told["bug"].startswith("ZeroDivisionError: division by zero (stub_task.py, line ")
    assert {name: outcomes[name].attempts for name in BAD} == {**dict.fromkeys(BAD, 2), "unreadable": 1}


def test_a_full_disk_stops_the_command(pool, tmp_path):
    with pytest.raises(ColocamError, match="cannot write a file: the disk is full: free some space"):
        list(do_all(pool, deque([StubTask("a", "full", tmp_path)])))


def test_workers_that_never_start_stop_the_command(monkeypatch, tmp_path):
    network, card = open_network(STORED / "model.onnx")
    monkeypatch.setattr("colocam.inference.engine.MOST_STARTS", 3)
    (tmp_path / "ending.py").write_text("import os; os._exit(3)")
    with closing(Workers(1)) as pool:
        pool.open([Localizer(network, card)], [str(tmp_path / "ending.py")], None, 1)
        with pytest.raises(ColocamError, match=r"3 workers in a row failed to start: its worker crashed \(exit code 3"):
            list(do_all(pool, deque([StubTask("a", "good", tmp_path)]), retries=9))


def test_an_extension_that_a_worker_cannot_load_stops_the_command(tmp_path):
    network, card = open_network(STORED / "model.onnx")
    with closing(Workers(1)) as pool:
        pool.open([Localizer(network, card)], ["no_such_module"], None, 1)
        with pytest.raises(ColocamError, match="cannot load the extension no_such_module"):
            list(do_all(pool, deque([StubTask("a", "good", tmp_path)])))


@dataclass(frozen=True)
class Named:
    """A task that nobody does."""

    name: str


class Script:
    """A pool that answers a task with what ``answer(task)`` gives, or raises it."""

    places = 2

    def __init__(self, answer):
        self.answer = answer

    def submit(self, task):
        future, answer = Future(), self.answer(task)
        future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
        return future

    def close(self):
        pass


@given(st.integers(0, 10**6))
def test_random_faults(seed):
    """Whatever happens, each task is either done once or given up after all its attempts."""
    chance, attempts = random.Random(seed), Counter()

    def answer(task):
        attempts[task.name] += 1
        return chance.choice(({}, {}, LostError("its worker crashed"), UnreadableError("no frame")))

    outcomes = list(do_all(Script(answer), deque(map(Named, "abcdefgh")), retries=2))
    assert sorted(task.name for task, _ in outcomes) == list("abcdefgh")
    for task, outcome in outcomes:
        assert attempts[task.name] == outcome.attempts <= 3
        assert not isinstance(outcome.error, LostError) or outcome.attempts == 3
