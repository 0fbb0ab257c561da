"""What a model found in a video that does not exist."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from colocam.labels.table import TableRows, take_rows
from colocam.serve.video_data import VideoIndex, VideoResults
from colocam.video.description import SourceVideo


def results_of(model, cuts=(), absent=(), tag="cat"):
    """Results with these boxes, None where there is none; ``absent``: positions where the model sees nothing."""
    count = len(model)
    frames, at = np.arange(count), np.arange(count)
    source = SourceVideo(Path("video.mp4"), 64, 48, Fraction(25), count, count / 25)
    index = VideoIndex(frames, frames / 25, np.empty(0), np.isin(at, list(cuts)), np.array([0]), source)
    box = np.array([one if one is not None else [np.nan] * 4 for one in model], float)
    found = {
        "frame": frames,
        "pts": frames / 25,
        "tag": [tag] * count,
        "box": box,
        "score": np.where(np.isnan(box[:, 0]), 0.0, 0.9),
        "presence": np.where(np.isin(at, list(absent)), 0.1, 0.9),
        "track": np.where(np.isnan(box[:, 0]), -1, 0),
        "mask": [""] * count,
        "refined": [""] * count,
    }
    rows = TableRows(**{name: found.get(name, np.full(count, np.nan)) for name in TableRows._fields})
    return VideoResults(index, rows, take_rows(rows, np.empty(0, np.int64)), np.zeros(count), [], np.zeros((0, 64, 64)))
