"""The interface between a Localizer and an engine: shapes are checked, maps post-processed where they are."""

import numpy as np
import pytest
import torch

from colocam.boxes import to_8bit
from colocam.errors import ColocamError
from colocam.inference.network import (
    HostOutput,
    NetworkOutput,
    OutputShape,
    PostProcessing,
    checked,
    completed,
    require_numbers,
)
from colocam.inference.passes import Passes, PassRows

FRAMES = np.zeros((2, 8, 8, 3), np.uint8)
FRAMES[:, :, :4, 0], FRAMES[:, :, 4:, 2] = 200, 200  # left half red, right half blue


SHAPE = OutputShape(classes=3, size=8, map_size=8)
IDS = np.array([[7, 0], [7, 1]])


def output(maps=None):
    shapes = {"logits": (2, 3), "maps": (2, 8, 8), "peaks": (2, 3), "activations": (2, 3, 4, 4)}
    parts = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return NetworkOutput(**parts, frames=FRAMES, ids=IDS)._replace(**({} if maps is None else {"maps": maps}))


def as_tensors(arrays):
    frames = torch.from_numpy(arrays.frames).permute(0, 3, 1, 2)
    return NetworkOutput(*(torch.from_numpy(part) for part in arrays[:4]), frames, torch.from_numpy(arrays.ids))


def postprocess(parts, how):
    """Post-process outputs that are computed."""

    class Stored:
        rows, on_gpu = 1, False

        def submit(self, images, ids):  # noqa: ARG002 - as Network
            return completed(parts[int(images[0][0, 0, 0, 0])])

    passes = Passes(Stored(), SHAPE)
    rows: list[PassRows] = []
    for number, part in enumerate(parts):
        count = len(part.logits)
        images = np.full((count, 8, 8, 3), number, np.uint8)
        rows.append(passes.submit(images, np.zeros((count, 2), np.int64), slice(0, count)))
    return passes.postprocess(rows, how)()


@pytest.mark.parametrize(
    ("field", "shape", "wanted"),
    [
        ("logits", (2, 4), r"\(2, 3\)"),
        ("maps", (2, 1, 8, 8), r"\(2, 8, 8\)"),
        ("maps", (1, 8, 8), r"\(2, 8, 8\)"),
        ("maps", (2, 4, 4), r"\(2, 8, 8\)"),
        ("maps", (2, 0, 0), r"\(2, 8, 8\)"),
        ("maps", (2, 8), r"\(2, 8, 8\)"),
        ("peaks", (2,), r"\(2, 3\)"),
        ("activations", (2, 4, 4), r"\(2, 3, 1–8, 1–8\)"),
        ("activations", (2, 3, 0, 4), r"\(2, 3, 1–8, 1–8\)"),
        ("activations", (2, 3, 9, 4), r"\(2, 3, 1–8, 1–8\)"),
        ("frames", (2, 8, 8), r"\(2, 8, 8, 3\)"),
    ],
)
def test_a_wrong_shape_is_named(field, shape, wanted):
    broken = output()._replace(**{field: np.zeros(shape, np.float32)})
    with pytest.raises(ColocamError, match=rf"^the network's {field} must have the shape {wanted}, got \({shape[0]},"):
        checked(broken, 2, SHAPE)


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("field", ["logits", "maps", "peaks", "activations"])
def test_other_types_and_values_are_named(field, tensors):
    values = getattr(output(), field).copy()
    for wrong, message in [
        (values.astype(np.float64), f"^the network's {field} must be float32.*, got float64"),
        (np.where(values == 0, np.float32(np.nan), values), f"^the network's {field} have NaN or infinite values"),
        (np.where(values == 0, np.float32(-np.inf), values), f"^the network's {field} have NaN or infinite values"),
    ]:
        broken = output()._replace(**{field: wrong})
        with pytest.raises(ColocamError, match=message):
            checked(as_tensors(broken) if tensors else broken, 2, SHAPE)


def test_maps_are_probabilities():
    with pytest.raises(ColocamError, match=r"^the network's maps must be in 0–1, got 0 to 1\.5$"):
        checked(output(np.linspace(0, 1.5, 128, dtype=np.float32).reshape(2, 8, 8)), 2, SHAPE)


def test_values_from_a_gpu_are_checked_on_the_host():
    logits, maps, peaks, *_ = output()
    sure = np.ones(2, np.float32)
    assert require_numbers(HostOutput(logits, maps, peaks, sure, IDS)).maps is maps
    with pytest.raises(ColocamError, match="the network's peaks have NaN"):
        require_numbers(HostOutput(logits, maps, peaks + np.float32(np.nan), sure, IDS))


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("levels", [False, True])
def test_maps_are_completed_by_colour(levels, tensors):
    """A bright spot on the red half of frame 0 spreads over the red of both frames, not over the blue."""
    maps = np.zeros((2, 8, 8), np.float32)
    maps[0, 2:4, 1:3] = 1
    given = output(to_8bit(maps) if levels else maps)
    given = as_tensors(given) if tensors else given
    parts = [NetworkOutput(*(part[at : at + 1] for part in given)) for at in (0, 1)]  # of two passes
    logits, found, peaks, sure, ids = postprocess(parts, PostProcessing(np.zeros(2, np.int64)))
    assert ids.tolist() == IDS.tolist()
    assert sure.tolist() == [1, 0]  # of the maps as the network gave them
    assert logits.shape == peaks.shape == (2, 3)
    scale, rounding = (255, 1.5 / 255) if found.dtype == np.uint8 else (1, 1e-3)
    mean = 4 / 64  # of the red pixels of both frames
    np.testing.assert_allclose(found[1, :, :4] / scale, 2 / 3 * mean, atol=rounding)
    np.testing.assert_allclose(found[0, 2:4, 1:3] / scale, 1 / 3 + 2 / 3 * mean, atol=rounding)
    np.testing.assert_allclose(found[:, :, 4:] / scale, 0, atol=rounding)


@pytest.mark.parametrize("tensors", [False, True])
def test_maps_stay_as_they_are_unless_asked(tensors):
    given = output(np.random.default_rng(0).random((2, 8, 8), np.float32))
    found = postprocess([as_tensors(given) if tensors else given], PostProcessing())
    for name in ("logits", "maps", "peaks", "ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))
