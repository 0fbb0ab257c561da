"""SAM, MobileSAM or SAM 2 as a pair of ONNX files, run by onnxruntime on the CPU without torch (extra ``onnx``).

Inputs are recognized by name, type and shape, as the usual exporters write them:

- The encoder has one image: (1, 3, S, S) float, normalized; or (H, W, 3) or uint8, in 0–255.
- The decoder has ``point_coords`` (P, n, 2), ``point_labels`` (P, n), ``mask_input`` (P, 1, h, w), ``has_mask_input``
  (1), and ``orig_im_size`` (2) if it resizes masks. Its other inputs are outputs of the encoder.
- It gives ``low_res_masks`` or ``masks`` (P, k, h, w) and ``iou_predictions`` (P, k), k = 1, 3 or 4.
"""

from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line
from colocam.segment.segmenter import MEAN, STD, Masks, Prompts
from colocam.types import Float32Array, Levels
from colocam.utils.device import open_session

if TYPE_CHECKING:
    import onnxruntime

SIDE = 1024
"""Width and height of the input where the encoder does not state them."""
CELLS = 256
"""Width and height of ``mask_input`` where the decoder does not state them."""
LARGEST = 4096
"""Width and height of an input at most."""
PROMPT_INPUTS = ("point_coords", "point_labels", "mask_input", "has_mask_input", "orig_im_size")

_TYPES = {f"tensor({name})": np.dtype(name) for name in ("float16", "uint8", "int32", "int64")}
_TYPES["tensor(float)"] = np.dtype("float32")


class OnnxSegmenter:
    """An encoder and a decoder, see :class:`colocam.segment.segmenter.Segmenter`; one image at a time."""

    def __init__(
        self, encoder: "onnxruntime.InferenceSession", decoder: "onnxruntime.InferenceSession", name: str
    ) -> None:
        self.encoder = encoder
        self.decoder = decoder
        self.name = name
        (self._image,) = encoder.get_inputs()
        self._inputs = {tensor.name: tensor for tensor in decoder.get_inputs()}
        self._features = [name for name in self._inputs if name not in PROMPT_INPUTS]
        outputs = [tensor.name for tensor in decoder.get_outputs()]
        self._outputs = ["low_res_masks" if "low_res_masks" in outputs else "masks", "iou_predictions"]
        sides = [side for side in self._image.shape if isinstance(side, int) and side > 3]
        self.side = max(sides, default=SIDE)

    def embed(self, images: Levels, /) -> list[dict[str, npt.NDArray[Any]]]:
        """The decoder's inputs of each image (S, S, 3)."""
        names = [tensor.name for tensor in self.encoder.get_outputs()]
        # A single output may have another name in the decoder.
        decoder_names = self._features if len(names) == len(self._features) == 1 else names
        embedded = (_run(self.encoder, names, {self._image.name: self._input(image)}) for image in images)
        return [dict(zip(decoder_names, outputs, strict=True)) for outputs in embedded]

    def masks(self, embedded: list[dict[str, npt.NDArray[Any]]], prompts: Prompts, /) -> Masks:
        """One to three masks for each prompt, as the decoder has them."""
        frames = zip(embedded, *prompts, strict=True)
        parts = [self._decode(features, points, labels) for features, points, labels in frames]
        logits, quality = (np.stack(part) for part in zip(*parts, strict=True))
        return Masks(logits, quality)

    def _input(self, image: Levels) -> npt.NDArray[Any]:
        shape = self._image.shape
        kind = _TYPES[self._image.type]
        raw = len(shape) == 3 or kind == np.uint8
        values = image if raw else (image - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
        if shape.index(3) < len(shape) - 1:
            values = values.transpose(2, 0, 1)
        return np.ascontiguousarray(values.reshape(*(1,) * (len(shape) - 3), *values.shape), kind)

    def _decode(
        self, features: dict[str, npt.NDArray[Any]], points: Float32Array, labels: npt.NDArray[np.int64]
    ) -> tuple[Float32Array, Float32Array]:
        """Logits (P, k, h, w) and qualities (P, k) for the prompts of one image."""
        at_once = 1 if isinstance(self._inputs["point_coords"].shape[0], int) else len(points)
        stated = self._inputs["mask_input"].shape[-2:] if "mask_input" in self._inputs else ()
        sides = [side if isinstance(side, int) else CELLS for side in stated]
        parts = []
        for start in range(0, len(points), at_once):
            chunk = slice(start, start + at_once)
            values: dict[str, npt.NDArray[Any]] = {
                "point_coords": points[chunk],
                "point_labels": labels[chunk],
                "mask_input": np.zeros((at_once, 1, *sides)),
                "has_mask_input": np.zeros(1),
                "orig_im_size": np.array([self.side, self.side]),
            }
            inputs = {
                name: value.astype(_TYPES[self._inputs[name].type])
                for name, value in values.items()
                if name in self._inputs
            }
            inputs |= {name: features[name] for name in self._features}
            parts.append(_checked(_run(self.decoder, self._outputs, inputs), len(points[chunk])))
        logits, quality = (np.concatenate(part).astype(np.float32) for part in zip(*parts, strict=True))
        first = int(quality.shape[1] == 4)  # of four masks the first is meant for several points
        return logits[:, first:], quality[:, first:]


def open_onnx_segmenter(*paths: Path) -> OnnxSegmenter:
    """Open an encoder and a decoder, in any order."""
    sessions = [open_session(path, f"the segmenter {path}") for path in paths]
    inputs = [{tensor.name for tensor in session.get_inputs()} for session in sessions]
    decoders = [index for index, names in enumerate(inputs) if {"point_coords", "point_labels"} <= names]
    names = f"{paths[0]} and {paths[1]}"
    if len(decoders) != 1:
        raise ColocamError(
            f"{names} are not an encoder and decoder of SAM: one of them must have the input point_coords"
        )
    decoder = sessions[decoders[0]]
    encoder = sessions[1 - decoders[0]]
    _check(encoder, decoder, names)
    shared = commonprefix([path.stem for path in paths]).strip("._- ")  # noqa: RUF071 - letters, not folders
    plain = "SAM 2" if any(name.startswith("high_res") for name in inputs[decoders[0]]) else "SAM"
    return OnnxSegmenter(encoder, decoder, shared or plain)


def _check(encoder: "onnxruntime.InferenceSession", decoder: "onnxruntime.InferenceSession", names: str) -> None:
    """Refuse a pair that does not fit together, before the first frame."""
    images = encoder.get_inputs()
    if len(images) != 1 or 3 not in images[0].shape or len(images[0].shape) not in {3, 4}:
        shapes = ", ".join(f"{image.name} {image.shape}" for image in images)
        raise ColocamError(f"{names}: the encoder must have one input, an image of 3 channels, got {shapes}")
    prompts = [tensor for tensor in decoder.get_inputs() if tensor.name in PROMPT_INPUTS]
    for tensor in (*images, *prompts):
        sides = [side for side in tensor.shape if isinstance(side, int)]
        rank = {"point_coords": 3, "point_labels": 2, "mask_input": 4}.get(tensor.name, len(tensor.shape))
        if tensor.type not in _TYPES or len(tensor.shape) != rank or not all(0 < side <= LARGEST for side in sides):
            raise ColocamError(f"{names}: the input {tensor.name} cannot be {tensor.type} of shape {tensor.shape}")
    outputs = {tensor.name for tensor in decoder.get_outputs()}
    if "iou_predictions" not in outputs or not outputs & {"masks", "low_res_masks"}:
        raise ColocamError(
            f"{names}: the decoder must return masks and iou_predictions, got {', '.join(sorted(outputs))}"
        )
    features = [tensor.name for tensor in encoder.get_outputs()]
    wanted = [tensor.name for tensor in decoder.get_inputs() if tensor.name not in PROMPT_INPUTS]
    missing = [name for name in wanted if name not in features]
    if missing and not len(features) == len(wanted) == 1:
        raise ColocamError(f"{names} do not belong together: the decoder needs {missing[0]}, which the encoder lacks")


def _run(
    session: "onnxruntime.InferenceSession", names: list[str], values: dict[str, npt.NDArray[Any]]
) -> list[npt.NDArray[Any]]:
    try:
        outputs = session.run(names, values)
    except Exception as error:  # its errors have no common base
        raise ColocamError(f"onnxruntime cannot run the segmenter: {first_line(error)}") from error
    if not all(isinstance(output, np.ndarray) for output in outputs):
        raise ColocamError("the outputs of the segmenter must be arrays of numbers")
    return list(outputs)


def _checked(outputs: list[npt.NDArray[Any]], prompts: int) -> list[npt.NDArray[Any]]:
    """Masks (P, k, h, h) and qualities (P, k) of P prompts; refuses other shapes, types, NaN and infinity."""
    logits, quality = outputs
    shaped = logits.ndim == 4 and quality.shape == logits.shape[:2] and len(logits) == prompts and 0 not in logits.shape
    if not shaped or logits.shape[2] != logits.shape[3] or {logits.dtype.kind, quality.dtype.kind} != {"f"}:
        raise ColocamError(
            f"the segmenter must return floats, masks (P, k, h, h) and iou_predictions (P, k) for P = {prompts} "
            f"prompts, got {logits.dtype} {logits.shape} and {quality.dtype} {quality.shape}"
        )
    if not np.isfinite(logits).all() or not np.isfinite(quality).all():
        raise ColocamError("the segmenter returns values that are not finite: its weights are damaged, export it again")
    return outputs
