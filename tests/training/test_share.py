"""Runs that share a classifier give the very models that runs with their own would give."""

import pytest

from colocam.errors import ColocamError
from colocam.evaluation.run_evaluation import evaluate
from tests.helpers.run_files import journal


@pytest.fixture(scope="module")
def stage1(tmp_path_factory, train_into):
    """A classifier alone."""
    return train_into(tmp_path_factory.mktemp("stage1") / "run", "methods=[]")


def test_a_run_without_methods_is_a_classifier_with_its_cams(stage1, collection, trained):
    assert {line["phase"] for line in journal(stage1)} == {"classifier"}
    assert not (stage1 / "model.json").exists()
    assert (stage1 / "classifier" / "cams.npy").read_bytes() == (trained / "classifier" / "cams.npy").read_bytes()
    found = evaluate(stage1, collection.truth, cams=["layercam"])
    assert list(found.methods) == ["layercam"]


@pytest.mark.parametrize("linked", [True, False])
def test_the_model_is_the_same_as_with_a_classifier_of_its_own(
    linked, stage1, trained, train_into, tmp_path, monkeypatch
):
    if not linked:

        def refuse(*_):
            raise OSError("no links here")

        monkeypatch.setattr("colocam.utils.files.os.link", refuse)
    monkeypatch.setattr("colocam.cams.cam_cache.spread_samples", None)  # CAMs are not computed again
    before = {path: path.read_bytes() for path in (stage1 / "classifier").iterdir()}
    run = train_into(tmp_path / "run", "methods=[colocam, fcam]", classifier=stage1)
    for model in ("model.safetensors", "model.json", "fcam/model.safetensors", "metrics.jsonl"):
        assert (run / model).read_bytes() == (trained / model).read_bytes()
    assert {path: path.read_bytes() for path in (stage1 / "classifier").iterdir()} == before
    inode = (run / "classifier" / "cams.npy").stat().st_ino
    assert (inode == (stage1 / "classifier" / "cams.npy").stat().st_ino) == linked


def test_a_classifier_of_something_else_is_refused(stage1, collection, train_into, tmp_path):
    with pytest.raises(ColocamError, match=r"a different configuration \(classifier.lr"):
        train_into(tmp_path / "a", "classifier.lr=0.01", classifier=stage1)
    with pytest.raises(ColocamError, match="different videos or boxes"):
        train_into(tmp_path / "b", boxes=collection.truth, classifier=stage1)
    with pytest.raises(ColocamError, match="no finished classifier"):
        train_into(tmp_path / "c", classifier=tmp_path / "a")


def test_clips_left_out_are_never_seen(stage1, train_into, tmp_path, monkeypatch):
    seen = set()
    plain = __import__("colocam.training.stage2", fromlist=["read_frames"]).read_frames

    def spy(clips, indices):
        seen.update(clips[number].clip.name for number in indices.clips.tolist())
        return plain(clips, indices)

    monkeypatch.setattr("colocam.training.stage2.read_frames", spy)
    train_into(tmp_path / "run", "localizer.epochs=3", "localizer.leave_out=1", classifier=stage1)
    assert sorted(name.partition("/")[0] for name in seen) == ["bus", "cat", "owl"]  # one of two clips each
