"""Event files, read by TensorBoard itself."""

import json
import sys

import pytest

from colocam.errors import ColocamError
from colocam.evaluation.result import write_events

RECORDS = [
    {"phase": "classifier", "event": "train", "epoch": 0, "step": 0, "lr": 0.5, "loss": 2.0},
    {"phase": "classifier", "event": "train", "epoch": 0, "step": 1, "lr": 0.25, "loss": None},
    {"phase": "classifier", "event": "val", "epoch": 0, "step": 2, "accuracy": 0.75, "note": "text"},
    {"phase": "colocam", "event": "train", "epoch": 0, "step": 0, "loss": 1.5},
]


@pytest.fixture
def run(tmp_path):
    lines = [json.dumps(record) for record in RECORDS]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"phase": "colo']))
    return tmp_path


def curves(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator").EventAccumulator
    found = accumulator(str(folder)).Reload()
    return {name: [(one.step, one.value) for one in found.Scalars(name)] for name in found.Tags()["scalars"]}


def test_curves_are_read_back_by_tensorboard(run):
    pytest.importorskip("tensorboard")
    for _ in range(2):  # a second conversion replaces the first
        out = write_events(run)
        assert curves(out / "classifier" / "train") == {"lr": [(0, 0.5), (1, 0.25)], "loss": [(0, 2.0)]}
        assert curves(out / "classifier" / "val") == {"accuracy": [(2, 0.75)]}
        assert curves(out / "colocam" / "train") == {"loss": [(0, 1.5)]}


def test_a_folder_without_metrics(tmp_path):
    pytest.importorskip("tensorboard")
    with pytest.raises(ColocamError, match=r"has no metrics.jsonl: give a run folder"):
        write_events(tmp_path)


def test_without_the_package_the_extra_is_named(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tensorboard.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ColocamError, match=r"pip install 'colocam\[tensorboard\]' \("):
        write_events(run)
