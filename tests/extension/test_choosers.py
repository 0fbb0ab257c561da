"""A chooser of boxes from outside, as the guide has it: it trains, evaluates, reports, localises and exports."""

import numpy as np
import pytest

from colocam.boxes import CHOOSERS, Candidates, Chooser, largest_boxes
from colocam.config import load_config
from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.video.reader import decode


def half_way(maps, threshold):
    """The largest contour half-way between τ and the maximum."""
    boxes, found = largest_boxes(maps, (1 + threshold) / 2)
    return [
        Candidates(box[None].astype(float), np.ones(1), np.full(1, (1 + threshold) / 2), 1)
        if there
        else Candidates(np.zeros((0, 4)), np.zeros(0), np.zeros(0), 0)
        for box, there in zip(boxes, found, strict=True)
    ]


def test_training_evaluation_report_and_export(monkeypatch, fit, use, collection):
    monkeypatch.setitem(CHOOSERS, "half-way", Chooser("half-way to the maximum", half_way, by_shot=False))
    run = fit("localizer.chooser=half-way", "localizer.threshold=0.2")
    done = use(run)
    assert "colocam" in done.evaluation
    assert done.labels
    localizer = Localizer.load(run, "cpu", smooth="none")
    assert (localizer.card.chooser, localizer.card.threshold) == ("half-way", 0.2)
    video = collection.videos / "cat" / "test-0.mp4"
    size = next(iter(decode(video))).image.shape[1::-1]
    for found in localizer(video):
        (box,), _ = largest_boxes(found.heatmap[None], 0.6)
        rows, columns = found.heatmap.shape
        expected = box / (columns, rows, columns, rows) * np.array(size * 2)
        assert list(found.box) == pytest.approx(expected.tolist(), abs=1e-3)
    published = Localizer.load(run, "cpu", smooth="none", chooser="largest")
    assert [one.box for one in published(video)] != [one.box for one in localizer(video)]


def test_a_chooser_that_is_not_registered():
    with pytest.raises(ColocamError, match=r"'localizer.chooser' names 'half-way', which is not in colocam\.boxes"):
        load_config(overrides=["localizer.chooser=half-way"])
