"""A prior that sees red, written as an ONNX file."""

from pathlib import Path

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RED = """<ir_version: 8, opset_import: ["" : 13]>
red (float[{shape}] image) => (float[1,1,h,w] map)
<float[1,3,1,1] weights = {{{weights}}}, float[1] bias = {{{bias}}}>
{{
  map = Conv (image, weights, bias)
}}"""


def write_red_prior(path: Path, shape: str = "1,3,16,24", *, weight: float = STD[0], bias: float = MEAN[0]) -> Path:
    """What it sees is red, divided by the maximum of the image: it undoes the normalization that U²-Net expects."""
    write_onnx(path, RED.format(shape=shape, weights=f"{weight}, 0, 0", bias=bias))
    return path


def write_onnx(path: Path, text: str) -> None:
    """Write a network from the text format of ONNX."""
    import onnx.parser  # noqa: PLC0415 - slow to import

    onnx.save(onnx.parser.parse_model(text), path)


def weighed_by_hand(level: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """S (0.1 + s)^½, scaled to the maximum of S, of a map in 0–255 and s in 0–1, pixel by pixel."""
    product = np.zeros(level.shape)
    for place in np.ndindex(*level.shape):
        product[place] = float(level[place]) * (0.1 + float(seen[place])) ** 0.5
    return product * float(level.max()) / product.max()


def weighed_where_it_agrees(level: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The same where both correlate by 0.3 or more; else the map as it is."""
    agrees = np.corrcoef(level.ravel(), seen.ravel())[0, 1] >= 0.3  # false for NaN
    return weighed_by_hand(level, seen) if agrees else level
