"""The same video gives the same boxes: to the last byte for any batch, within rounding for any engine."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from colocam.boxes.iou import iou
from colocam.config.options import Options
from colocam.inference import Localizer
from colocam.inference.localize import localize_file
from colocam.maps.postprocess import with_color_mean
from colocam.models import foreground
from colocam.models.model_file import load_model
from colocam.video.fence import decode
from tests.helpers.csv_tables import csv_rows

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
MODELS = {"torch": STORED / "run", "onnx": STORED / "model.onnx"}
SHOTS = [34, 9, 5]
"""Longer than a window; a cut inside a pass of 8 or 16 frames; a short end."""
WINDOWS = [32, 2, 9, 5]


@pytest.fixture(scope="module")
def video(tmp_path_factory, make_video, square_video):
    """Three shots of different colors, 48×40 pixels; read only."""
    cat, owl, bus = (square_video(tag, n, n)[0] for tag, n in zip(("cat", "owl", "bus"), SHOTS, strict=True))
    frames = [*cat, *(255 - frame for frame in owl), *bus]
    return make_video(tmp_path_factory.mktemp("video") / "video.mkv", frames, codec="ffv1", pix_fmt="bgr0")


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("smooth", ["offline", "online", "none"])
@pytest.mark.parametrize("engine", MODELS)
def test_the_localization_table_does_not_depend_on_the_batch(video, tmp_path, engine, smooth, looks):
    options = {"smooth": smooth, "masks": True, "looks": looks}
    usual = localize_file(
        MODELS[engine], video, tmp_path / "usual", annotate=False, options=Options(**options)
    ).table.read_bytes()  # batches of 32
    assert usual.count(b"\n") == sum(SHOTS) + 1
    for batch in (1, 7, 128) if smooth == "offline" else (7,):
        table = localize_file(
            MODELS[engine], video, tmp_path / str(batch), annotate=False, options=Options(batch=batch, **options)
        ).table
        assert table.read_bytes() == usual


@pytest.mark.parametrize("smooth", ["offline", "online", "none"])
def test_engines_agree(video, tmp_path, smooth):
    tables, described = [], []
    for engine, model in MODELS.items():
        table = localize_file(
            model, video, tmp_path / engine, annotate=False, options=Options(smooth=smooth, masks=True)
        ).table
        described.append(json.loads(table.with_suffix(".video.json").read_text(encoding="utf-8")))
        tables.append(csv_rows(table))
    assert described[0].pop("made") != described[1].pop("made")  # of another model, so the command would do it again
    assert all(one.pop("results").keys() == {"video.csv"} for one in described)  # the bytes differ
    assert described[0] == described[1]
    for one, two in zip(*tables, strict=True):
        assert (one["frame"], one["class"], one.get("track")) == (two["frame"], two["class"], two.get("track"))
        for name in ("probability", "presence"):
            assert float(one[name]) == pytest.approx(float(two[name]), abs=1e-3)
        assert (one["mask"] == "") == (two["mask"] == "")
        a, b = (np.array([float(row[name] or "nan") for name in ("x1", "y1", "x2", "y2")]) for row in (one, two))
        assert np.isnan(a[0]) == np.isnan(b[0])
        assert np.isnan(a[0]) or iou(a, b) > 0.98 or np.abs(a - b).max() <= 64 / 32  # a pixel of the map


def trained_model(video):
    """The model, and the frames (B, 3, S, S) of a video at its size."""
    model = load_model(MODELS["torch"])
    size = model.card.size, model.card.size
    images = np.stack([cv2.resize(one.image, size, interpolation=cv2.INTER_AREA) for one in decode(video)])
    return model, torch.from_numpy(images).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("engine", "smooth"), [("torch", "offline"), ("onnx", "offline"), ("torch", "online"), ("onnx", "none")]
)
def test_colors_are_shared_within_a_window_of_a_shot(video, engine, smooth):
    """Against the network, built by hand and run on all frames at once, and windows counted by hand."""
    found = Localizer.load(MODELS[engine], smooth=smooth, focus=False, batch=5)(video)
    heat = np.stack([one.heatmap for one in found])
    model, frames = trained_model(video)
    lengths = torch.tensor(WINDOWS if smooth == "offline" else [1] * len(frames))
    ids = torch.arange(len(lengths)).repeat_interleave(lengths)
    with torch.inference_mode():
        want = with_color_mean(frames, foreground(model.net(frames).map_logits), ids).numpy()
    np.testing.assert_allclose(heat, want, atol=1e-3)


@pytest.mark.parametrize("engine", MODELS)
def test_the_class_that_focus_uses_is_that_of_the_window(video, engine):
    """Maps with focus on the class found in each window are those with that class given."""
    found = list(Localizer.load(MODELS[engine])(video))
    model, frames = trained_model(video)
    with torch.inference_mode():
        logits = model.net(frames).class_logits
    by_tag = {tag: list(Localizer.load(MODELS[engine], tag=tag)(video)) for tag in model.card.tags}
    start = 0
    for length in WINDOWS:
        tag = model.card.tags[int(logits[start : start + length].sum(0).argmax())]
        for one, two in zip(found[start : start + length], by_tag[tag][start : start + length], strict=True):
            np.testing.assert_array_equal(one.heatmap, two.heatmap)
        start += length
