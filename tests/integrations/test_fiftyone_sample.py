"""Samples of FiftyOne's own classes; skipped where it is not installed (a gigabyte)."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

os.environ.setdefault("FIFTYONE_DATABASE_URI", "mongodb://127.0.0.1:1")  # samples in memory need no database
pytest.importorskip("fiftyone", reason="needs FiftyOne, a gigabyte")

from colocam import Localizer
from colocam.integrations.fiftyone_sample import localized_sample
from colocam.video.fence import probe_source

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"


def test_frames_count_from_1_with_relative_boxes_tracks_and_heat_maps(tmp_path):
    localizer = Localizer.load(STORED / "model.onnx")
    video = STORED / "video.mp4"
    sample = localized_sample(localizer, video, tmp_path)
    source = probe_source(video)
    found = list(localizer(video))
    assert len(sample.frames) == len(found)
    for one in found:
        frame = sample.frames[one.frame + 1]
        boxes = [] if one.box is None else [one.box]
        for detection, box in zip(frame.objects.detections, boxes, strict=True):
            x, y, width, height = detection.bounding_box
            corners = np.array([x, y, x + width, y + height]) * ([source.width, source.height] * 2)
            np.testing.assert_allclose(corners, box, atol=1e-6)
            assert (detection.label, detection.index) == (one.tag, one.track)
        levels = np.asarray(Image.open(frame.heatmap.map_path))
        np.testing.assert_allclose(levels / 255, one.heatmap, atol=1 / 255)
        assert frame.heatmap.range == [0, 255]
