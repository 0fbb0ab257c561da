"""A segmenter without weights, and tiny ONNX pairs with the signatures of the usual exporters."""

import numpy as np
import pytest

from colocam.segment.segmenter import Masks


class BoxSegmenter:
    """Fills the box of each prompt: the whole box, its left half, and nothing. A point gets a small square."""

    name = "Boxes"
    side = 64

    def embed(self, images):
        assert images.dtype == np.uint8
        assert images.shape[1:] == (64, 64, 3)
        return len(images)

    def masks(self, embedded, prompts):
        frames, count = prompts.points.shape[:2]
        assert embedded == frames
        logits = np.full((frames, count, 3, 32, 32), -4.0, np.float32)
        for index in np.ndindex(frames, count):
            (x1, y1), (x2, y2) = prompts.points[index] / 2
            if prompts.labels[index][0] == 1:
                x1, y1, x2, y2 = x1 - 1, y1 - 1, x1 + 1, y1 + 1
            rows = slice(max(round(y1), 0), max(round(y2), 0))
            logits[(*index, 0, rows, slice(max(round(x1), 0), max(round(x2), 0)))] = 4
            logits[(*index, 1, rows, slice(max(round(x1), 0), max(round((x1 + x2) / 2), 0)))] = 4
        return Masks(logits, np.full((frames, count, 3), 0.5, np.float32))


@pytest.fixture
def box_segmenter():
    return BoxSegmenter()
