"""A chooser of boxes from outside: it trains, evaluates, reports, localises and exports."""

import numpy as np
import pytest

from colocam.boxes import CHOOSERS, Candidates, Chooser
from colocam.inference import Localizer
from colocam.video.fence import decode


def corner(maps, threshold):
    """The same corner in every frame."""
    box = np.array([[1.0, 2.0, 9.0, 8.0]])
    return [Candidates(box, np.ones(1), np.full(1, threshold), 1) for _ in maps]


def test_training_evaluation_report_and_export(monkeypatch, fit, use, collection):
    monkeypatch.setitem(CHOOSERS, "corner", Chooser("always the same corner", corner))
    run = fit("localizer.chooser=corner", "localizer.threshold=0.2")
    done = use(run)
    assert done.evaluation["colocam"]["tags-only"] != done.evaluation["colocam"]["oracle-global"]
    assert done.evaluation["colocam"]["tags-only"]["threshold"] == 0.2
    video = collection.videos / "cat" / "test-0.mp4"
    width, height = next(iter(decode(video))).image.shape[1::-1]
    for smooth in ("none", "offline"):
        localizer = Localizer.load(run, "cpu", smooth=smooth)
        assert (localizer.card.chooser, localizer.card.threshold) == ("corner", 0.2)
        for found in localizer(video):
            rows, columns = found.heatmap.shape
            expected = [1 / columns * width, 2 / rows * height, 9 / columns * width, 8 / rows * height]
            assert list(found.box) == pytest.approx(expected, abs=1e-3)
    assert {round(label["bbox"][2], 2) for label in done.labels} == {round(8 / columns * width, 2)}
