"""All ways that are timed give the same boxes."""

import json

import numpy as np
import pytest

from colocam.boxes import boxes_at_levels
from lab.bench import boxes as bench_boxes


@pytest.mark.parametrize("maps", [bench_boxes.smooth_maps(40), bench_boxes.rough_maps(40)[:4]])
def test_the_ways_agree(maps):
    expected = boxes_at_levels(maps[:2])
    np.testing.assert_array_equal(bench_boxes.levels_by_opencv(maps[:2]), expected)


def test_every_way_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench_boxes, "BATCH", 2)
    result = bench_boxes.run("cpu", tmp_path / "boxes.json", size=40, repeats=1)
    assert [case["maps"] for case in result["cases"]] == ["smooth", "rough"]
    assert all(list(case["ms"]) == ["localize", "evaluate", "evaluate with OpenCV"] for case in result["cases"])
    assert json.loads((tmp_path / "boxes.json").read_text()) == result
    assert "OpenCV" in capsys.readouterr().out
