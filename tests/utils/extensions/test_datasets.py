"""A data set that is added from outside: indexed by the command line, then trained, evaluated and reported on."""

import json
from pathlib import Path

import pytest

from colocam.data import DATASETS, index_dataset
from colocam.errors import ColocamError

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "extend" / "dataset.md"
EXTENSION = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
"""The code that the guide shows."""


@pytest.fixture
def registered(tmp_path, monkeypatch):
    (tmp_path / "my_data.py").write_text(EXTENSION, encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(tmp_path / "my_data.py"))
    before = dict(DATASETS)
    yield
    DATASETS.clear()
    DATASETS.update(before)


@pytest.fixture
def root(tmp_path, make_video, square_video):
    labels = {}
    for number, split in enumerate(("train", "train", "val", "test")):
        for tag in ("bus", "cat"):
            frames, boxes = square_video(tag, number)
            make_video(tmp_path / "mine" / f"{tag}-{number}.mp4", frames)
            found = {index: list(map(int, box)) for index, box in enumerate(boxes) if box and split != "train"}
            labels[f"{tag}-{number}"] = {"tag": tag, "split": split, "boxes": found}
    (tmp_path / "mine" / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    return tmp_path / "mine"


@pytest.mark.usefixtures("registered")
def test_a_data_set_in_a_file_of_ones_own(colocam, root, tmp_path, tiny_sets):
    assert "mine             Index my videos with labels.json." in colocam("index", "--help").out
    shown = colocam("index", "mine", "--help").out
    assert "--scale" in shown
    assert "Factor of the boxes." in shown
    outcome = colocam("index", "mine", root, "--scale", "1", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert f"now: colocam train {tmp_path / 'out' / 'manifest.csv'} --out RUN" in outcome.err
    run, truth = tmp_path / "run", tmp_path / "out" / "truth.csv"
    trained = colocam(
        "train", tmp_path / "out" / "manifest.csv", "--preset", "demo", "--out", run, "--boxes", truth, *tiny_sets
    )
    assert trained.code == 0, trained.err
    evaluated = colocam("evaluate", run, "--boxes", truth)
    assert evaluated.code == 0, evaluated.err
    assert "8 frames of 2 test videos" in evaluated.out
    assert colocam("report", run).code == 0
    assert (run / "report" / "index.html").is_file()


@pytest.mark.usefixtures("registered")
def test_options_and_names(colocam, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert colocam("index", "mine", root, "--scale", "0.5").code == 0
    halved = (tmp_path / "mine-index" / "truth.csv").read_text(encoding="utf-8").splitlines()
    assert colocam("index", "mine", root).code == 0
    whole = (tmp_path / "mine-index" / "truth.csv").read_text(encoding="utf-8").splitlines()
    for one, other in zip(halved[1:], whole[1:], strict=True):
        assert [2 * float(side) for side in one.split(",")[3:7]] == [float(side) for side in other.split(",")[3:7]]
    assert colocam("index", "mien", root).code == 2
    with pytest.raises(ColocamError, match="name must be a data set, got 'yotube-objects': did you mean"):
        index_dataset("yotube-objects", root)
