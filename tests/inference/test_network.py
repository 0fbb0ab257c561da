"""The interface between a Localizer and an engine: shapes are checked, maps post-processed where they are."""

import numpy as np
import pytest
import torch

from colocam.errors import ColocamError
from colocam.inference.network import (
    HostOutput,
    NetworkOutput,
    OutputShape,
    checked,
    require_numbers,
)

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


def test_values_from_a_gpu_are_checked_on_the_host():
    logits, maps, peaks, *_ = output()
    sure = np.ones(2, np.float32)
    assert require_numbers(HostOutput(logits, maps, peaks, sure, IDS)).maps is maps
    with pytest.raises(ColocamError, match="the network's peaks have NaN"):
        require_numbers(HostOutput(logits, maps, peaks + np.float32(np.nan), sure, IDS))
