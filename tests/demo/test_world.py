import csv
import hashlib
import json

import numpy as np
import pytest

from colocam.data.catalogue import read_catalogue
from colocam.data.truth import read_truth
from colocam.demo.figures import CLASSES
from colocam.demo.world import make_world
from colocam.errors import ColocamError

SMALL = {"videos_per_class": (2, 1, 1), "frames": 5, "size": (64, 48), "fps": 12}


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return folder, make_world(folder, seed=3, **SMALL)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(made, tmp_path):
    folder, _ = made
    make_world(tmp_path / "again", seed=3, **SMALL)
    assert digests(tmp_path / "again") == digests(folder)
    make_world(tmp_path / "other", seed=4, **{**SMALL, "videos_per_class": (1, 0, 0)})
    first, other = digests(folder), digests(tmp_path / "other")
    assert len(other) == len(CLASSES) + 3
    assert not [name for name in other if first[name] == other[name]]


def test_the_truth_has_every_frame_once_and_stays_apart(made):
    folder, world = made
    truth = read_truth(world.truth)
    clips = [clip.name for clip in read_catalogue(world.manifest).clips]
    assert sorted(truth.frames) == sorted(clips)
    assert all(truth.labeled(clip) == [0, 1, 2, 3, 4] for clip in clips)
    boxes = [box for clip in clips for frame in range(5) for box in truth.boxes(clip, frame)]
    assert len(boxes) > 0.6 * 5 * len(clips)
    assert np.all(np.array(boxes) >= 0)
    assert np.all(np.array(boxes)[:, [0, 2]] <= 64)
    assert np.all(np.array(boxes)[:, [1, 3]] <= 48)
    assert not any("box" in key or "x1" in key for key in csv.DictReader(world.manifest.open()).fieldnames)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.csv", "truth.csv", "videos", "world.json"]


def test_an_interrupted_world_is_finished(made, tmp_path, monkeypatch):
    folder, _ = made
    whole = make_world.__globals__["render"]
    left = iter(range(7))

    def interrupted(*args, **kwargs):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return whole(*args, **kwargs)

    monkeypatch.setitem(make_world.__globals__, "render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_world(tmp_path, seed=3, **SMALL)
    assert not (tmp_path / "manifest.csv").exists()
    assert not list(tmp_path.rglob("*.tmp*"))
    monkeypatch.undo()
    make_world(tmp_path, seed=3, **SMALL)
    assert digests(tmp_path) == digests(folder)


@pytest.mark.parametrize("note", ["other", "damaged"])
def test_another_world_is_not_overwritten(note, tmp_path):
    text = {"other": json.dumps({"format": 1, "seed": 9}), "damaged": "{"}[note]
    (tmp_path / "world.json").write_text(text)
    with pytest.raises(ColocamError, match="contains a different world") as caught:
        make_world(tmp_path, **SMALL)
    assert str(tmp_path) in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["world.json"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", -1), ("videos_per_class", (1, -1, 1)), ("frames", 0), ("size", (64, 8)), ("fps", 0)],
)
def test_impossible_worlds_are_refused_before_anything_is_written(name, value, tmp_path):
    with pytest.raises(ColocamError, match=f"{name}.*at least"):
        make_world(tmp_path / "world", **{**SMALL, name: value})
    assert not (tmp_path / "world").exists()
