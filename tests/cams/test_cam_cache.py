"""CAMs on disk: computed once, looked up by clip and frame, and anew for another classifier or other frames."""

import json

import numpy as np
import pytest
import torch

from colocam.cams import CAMS, Cam, classifier_cams, extract, min_max, open_cam
from colocam.cams.cam_cache import CamStore, open_cams
from colocam.config import Config, load_config
from colocam.data.augment import whole
from colocam.data.batches import BatchIndices
from colocam.data.frame_cache import ROW, CachedClip
from colocam.errors import InterruptedRunError
from colocam.models import Classifier
from colocam.types import Clip
from colocam.utils import progress as interrupt
from colocam.utils.tensors import content_hash

CPU = torch.device("cpu")


def source(method, classifier):
    return open_cam(method, classifier, Config(), ["cat", "dog"], CPU)


def indices(clips, frames):
    return BatchIndices(torch.tensor(clips), torch.tensor(frames), torch.arange(len(clips)))


@pytest.mark.parametrize("pool", [0, 1, 2, 5])
def test_pooling_is_the_maximum_over_predecessors_of_the_same_clip(pool):
    cams = np.random.default_rng(0).random((9, 3, 3)).astype(np.float16)
    lengths, starts = [4, 5], [0, 4]
    kept = CamStore(cams, lengths)
    for clip, length in enumerate(lengths):
        for frame in range(length):
            first = starts[clip] + max(0, frame - pool)
            expected = cams[first : starts[clip] + frame + 1].max(0)
            assert (kept.read(indices([clip], [frame]), pool)[0].numpy() == expected).all()


@pytest.fixture(scope="module")
def classifiers(tiny):
    torch.manual_seed(0)
    backbone = load_config(overrides=tiny).backbone
    return Classifier(backbone, 2).eval(), Classifier(backbone, 2).eval()


@pytest.fixture
def clips(tmp_path):
    rng = np.random.default_rng(0)
    made = []
    for name, tag, frames in (("a", "cat", 3), ("b", "dog", 1), ("c", "cat", 2)):
        file = tmp_path / f"{name}.rgb"
        rng.integers(0, 256, (frames, 36, 36, 3)).astype(np.uint8).tofile(file)
        rows = np.array([(i, i / 25, 64, 48) for i in range(frames)], ROW)
        made.append(CachedClip(Clip(name, tag, "train", tmp_path / name, name), file, 36, rows))
    return made


@pytest.mark.parametrize("method", classifier_cams())
def test_stored_cams_are_those_of_the_classifier(method, classifiers, clips, tmp_path, capsys):
    kept = open_cams(source(method, classifiers[0]), clips, ["cat", "dog"], 32, tmp_path / "cams.npy", CPU)
    assert kept.cams.shape == (6, 4, 4)
    assert kept.cams.dtype == np.float16
    for clip, frame, class_ in ((0, 2, 0), (1, 0, 1), (2, 1, 0)):
        frames = whole(torch.from_numpy(clips[clip].frames[frame].copy()).permute(2, 0, 1)[None], 32)
        expected = min_max(extract(method, classifiers[0], frames, torch.tensor([class_])))
        torch.testing.assert_close(kept.read(indices([clip], [frame])), expected, rtol=0, atol=2e-3)
    assert "class activation maps: 6/6" in capsys.readouterr().err


def test_they_are_computed_once_and_again_only_if_something_changed(classifiers, clips, tmp_path, monkeypatch):
    calls = []

    def counted(maps):
        return lambda seen: (calls.append(len(seen.frames)), maps(seen))[1]

    for name in ("cam", "layercam"):
        monkeypatch.setitem(CAMS, name, Cam(name, counted(CAMS[name].maps)))
    path = tmp_path / "cams.npy"

    def computed(classifier, chosen=clips, size=32, method="layercam"):
        calls.clear()
        found = open_cams(source(method, classifier), chosen, ["cat", "dog"], size, path, CPU)
        assert len(found.cams) == sum(map(len, chosen))
        return sum(calls)

    assert computed(classifiers[0]) == 6
    assert computed(classifiers[0]) == 0
    assert computed(classifiers[1]) == 6
    assert computed(classifiers[1], clips[:2]) == 4
    assert computed(classifiers[1], clips[:2], 24) == 4
    assert computed(classifiers[1], clips[:2], 24, "cam") == 4
    assert computed(classifiers[1], clips[:2], 24, "cam") == 0
    assert computed(classifiers[1], clips[:2], 24) == 4
    path.with_suffix(".json").unlink()
    assert computed(classifiers[1], clips[:2], 24) == 4
    path.unlink()
    assert computed(classifiers[1], clips[:2], 24) == 4


def test_another_function_under_the_same_name_is_computed_again(classifiers, monkeypatch):
    def first(seen):
        return seen.features[-1].mean(1)

    def second(seen):
        return seen.features[-1].amax(1)

    identities = []
    for function in (first, second, first):
        monkeypatch.setitem(CAMS, "mine", Cam("Mine", function))
        identities.append(source("mine", classifiers[0]).identity)
    assert identities[0] == identities[2] != identities[1]
    assert source("cam", classifiers[0]).identity.keys() == {"method", "classifier"}  # as version 0.1.0 stored it


def test_an_interruption_leaves_nothing_that_looks_whole(classifiers, clips, tmp_path, monkeypatch):
    path = tmp_path / "cams" / "cams.npy"
    open_cams(source("cam", classifiers[1]), clips, ["cat", "dog"], 32, path, CPU)
    with monkeypatch.context() as patch:
        patch.setattr(interrupt, "_requested", True)
        with pytest.raises(InterruptedRunError, match="class activation maps"):
            open_cams(source("cam", classifiers[0]), clips, ["cat", "dog"], 32, path, CPU)
    assert not path.with_suffix(".json").exists()
    kept = open_cams(source("cam", classifiers[0]), clips, ["cat", "dog"], 32, path, CPU)
    assert json.loads(path.with_suffix(".json").read_text())["source"]["classifier"] == content_hash(classifiers[0])
    assert len(kept.cams) == 6


@pytest.mark.parametrize("name", ["cams.npy", "cams.json"])
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00v\x00{'descr'", b"{"])
def test_damaged_files_are_computed_again(classifiers, clips, tmp_path, name, content):
    arguments = (source("cam", classifiers[0]), clips, ["cat", "dog"], 32, tmp_path / "cams.npy", CPU)
    whole_cams = np.array(open_cams(*arguments).cams)
    (tmp_path / name).write_bytes(content)
    assert (open_cams(*arguments).cams == whole_cams).all()
