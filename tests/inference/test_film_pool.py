"""Many films at once: the same bytes whatever the number of workers and kills; nothing is left behind."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from child_processes import children
from colocam.errors import ColocamError
from colocam.inference import film_pool, localize
from colocam.inference.film import Writing
from colocam.inference.localize import localize_videos
from colocam.inference.network import NetworkOutput, OutputShape, completed
from colocam.inference.pass_filler import GROUP, PassFiller

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
LENGTHS = {"a": 3, "b": 45, "c": 16, "d": 33}


@pytest.fixture
def films(tmp_path, make_video, square_video):
    """Films of other lengths than a pass or a window, one of them with a cut, and a file that is no film."""
    (tmp_path / "films").mkdir()
    for tag, (name, length) in zip(("cat", "owl", "bus", "cat"), LENGTHS.items(), strict=True):
        frames = square_video(tag, length, length)[0]
        frames = [*frames[:20], *(255 - frame for frame in frames[20:])]
        make_video(tmp_path / "films" / f"{name}.mp4", frames)
    (tmp_path / "films" / "broken.mp4").write_bytes(b"not a film")
    return tmp_path / "films"


def results_of(folder):
    """Tables and annotated videos by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in {".csv", ".mp4"}}


def workers():
    return children("film_worker")


def localise(model, films, out, count, killed=0, **writing):
    for number, _ in enumerate(localize_videos(STORED / model, [films], out, Writing(**writing), workers=count)):
        if number < killed:
            os.kill(workers()[0], signal.SIGKILL)


@pytest.mark.parametrize(("model", "count", "killed", "annotate"), [("model.onnx", 3, 1, True), ("run", 2, 0, False)])
def test_results_are_the_same_for_any_number_of_workers_and_after_kills(
    films, tmp_path, capsys, model, count, killed, annotate
):
    left_out = "1 of 5 videos cannot be read, see the warnings; the others are done"
    with pytest.raises(ColocamError, match=left_out):
        localise(model, films, tmp_path / "alone", 1, annotate=annotate)
    assert capsys.readouterr().err.count("broken.mp4: not a whole video file") == 1
    with pytest.raises(ColocamError, match=left_out):
        localise(model, films, tmp_path / "many", count, killed=killed, annotate=annotate)
    said = capsys.readouterr().err
    assert said.count("broken.mp4: not a whole video file") == 1
    assert [line for line in said.splitlines() if "localizing in 5 videos: " in line][-1].endswith("5 of 5 videos done")
    alone = results_of(tmp_path / "alone")
    assert len(alone) == len(LENGTHS) * (2 if annotate else 1)
    assert results_of(tmp_path / "many") == alone
    assert workers() == []
    assert not list((tmp_path / "many").glob(".*"))


@pytest.mark.parametrize(("on_gpu", "count"), [(False, 16), (True, 24)])
def test_workers_that_wait_for_a_gpu_are_more_than_cores(monkeypatch, on_gpu, count):
    monkeypatch.setattr(film_pool, "cores", lambda: 16)
    assert film_pool.most_workers(SimpleNamespace(network=SimpleNamespace(on_gpu=on_gpu))) == count


def test_more_workers_start_when_the_device_is_known(films, tmp_path, monkeypatch):
    started = []

    def start(count, others=0):
        started.append((count, others))
        return film_pool.start_workers(count, others)

    monkeypatch.setattr(localize, "start_workers", start)
    monkeypatch.setattr(localize, "cores", lambda: 2)
    monkeypatch.setattr(localize, "most_workers", lambda _: 3)
    monkeypatch.setattr(localize, "FILMS_OF_A_WORKER", 1)
    (films / "broken.mp4").unlink()
    localise("model.onnx", films, tmp_path / "alone", 1, annotate=False)
    localise("model.onnx", films, tmp_path / "many", None, annotate=False)
    assert started == [(2, 0), (1, 2)]
    assert results_of(tmp_path / "many") == results_of(tmp_path / "alone")
    assert workers() == []


def test_who_stops_early_leaves_neither_processes_nor_temporary_files(films, tmp_path):
    threads = set(threading.enumerate())
    stream = localize_videos(STORED / "model.onnx", [films], tmp_path / "out", Writing(annotate=False), workers=2)
    next(stream)
    assert len(workers()) == 2
    stream.close()
    assert workers() == []
    assert not list((tmp_path / "out").glob(".*"))
    for thread in set(threading.enumerate()) - threads:
        if thread.name != "passes":
            thread.join(60)  # it was told to end
            assert not thread.is_alive(), thread.name


class Rows:
    """A network whose outputs are means of the images; ``uneven`` adds the row, as rounding might."""

    def __init__(self, rows, *, uneven=False):
        self.rows, self.uneven, self.passes = rows, uneven, []
        self.ready = threading.Event()
        self.ready.set()

    def settle(self):
        assert self.ready.wait(60)

    def submit(self, images):
        self.passes.append(images)
        means = images.mean((1, 2, 3), dtype=np.float64).astype(np.float32)
        means = means + np.arange(len(images), dtype=np.float32) if self.uneven else means
        maps = np.broadcast_to(means[:, None, None] / 256, (len(images), 4, 4)).astype(np.float32)
        return completed(NetworkOutput(means[:, None], maps, means[:, None], maps[:, None], images))


@pytest.mark.parametrize("uneven", [False, True])
def test_groups_of_several_films_share_passes_where_rows_are_alike(uneven):
    network = Rows(4 * GROUP, uneven=uneven)
    filler = PassFiller(network, 4 * GROUP, OutputShape(1, 8, 4))
    assert filler.group == (4 * GROUP if uneven else GROUP)
    network.passes.clear()
    images = np.random.default_rng(0).integers(0, 256, (9, filler.group, 8, 8, 3), np.uint8)
    with ThreadPoolExecutor(9) as pool:
        futures = list(zip(images, pool.map(filler.submit, images), strict=True))
    for group, future in futures:
        output = future.result()
        alone = Rows(filler.group, uneven=uneven).submit(group).result()
        assert all(np.array_equal(a, b) for a, b in zip(output, alone, strict=True))
    filler.close()
    assert len(network.passes) <= 9
    assert {len(one) for one in network.passes} == {4 * GROUP}


def test_groups_that_come_while_a_pass_runs_share_the_next_ones():
    network = Rows(4 * GROUP)
    filler = PassFiller(network, 4 * GROUP, OutputShape(1, 8, 4))
    network.passes.clear()
    network.ready.clear()  # a pass is under way
    futures = [filler.submit(np.full((GROUP, 8, 8, 3), number, np.uint8)) for number in range(8)]
    assert not any(future.done() for future in futures)
    network.ready.set()
    assert [int(future.result().logits[0, 0]) for future in futures] == list(range(8))
    filler.close()
    assert len(network.passes) == 2
