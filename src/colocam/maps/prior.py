"""A prior of objects: a network that sees where any object stands out weighs the maps of another one.

With S a map and s what the prior says of its pixels, both in 0–1,

    S' = S ⊙ (0.1 + s)^½,

scaled to the maximum of S, in frames where s and S correlate (docs/method/prior.md). The prior is any ONNX file with
one image for its input and a map for its first output, for example a network that was trained with masks of salient
objects: more than tags.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line
from colocam.types import Float32Array, Levels
from colocam.utils.device import open_session, threads
from colocam.utils.files import stored
from colocam.utils.progress import long_work, say

if TYPE_CHECKING:
    import onnxruntime
    import torch

    from colocam.maps.torch_prior import TorchPrior

FLOOR = 0.1
"""What the prior does not see at all keeps a share of its heat, √(0.1 / 1.1) = 0.30."""
POWER = 0.5
AGREEMENT = 0.3
"""Correlation of s and S from which a prior weighs a map. Below it, it mostly sees something else than the object."""
SIDE = 320
"""Width and height of the input where the file does not state them."""
LARGEST = 2048
"""Width and height of an input or a map at most."""
MEAN: Float32Array = np.array([0.485, 0.456, 0.406], np.float32)
STD: Float32Array = np.array([0.229, 0.224, 0.225], np.float32)
"""Of RGB in 0–1 over ImageNet."""
ROUNDING = 1e-3
WANTED = "give a network with one input, RGB (1, 3, H, W) as float32, whose first output is a map (1, 1, h, w) in 0–1"
_FACTORS = ((FLOOR + np.arange(256, dtype=np.float32) / 255) ** POWER).astype(np.float32)
"""Factor of each level of the prior."""


class Prior:
    """Sees where any object stands out in an image; may be called from any thread.

    On a CPU each image has a pass and a thread of its own; on a GPU passes have a fixed number of images. So what it
    sees in an image depends on no other.

    Attributes:
        path: of the file.
        name: for tables, the stem of its name.
        gpu: runs the network on a GPU; None: onnxruntime does, on the CPU.
    """

    def __init__(self, path: Path, session: "onnxruntime.InferenceSession") -> None:
        self.path, self.name = path, path.stem
        self.gpu: TorchPrior | None = None
        self._session = session
        (self._input,) = session.get_inputs()
        self._output = session.get_outputs()[0].name
        self._height, self._width = (side if isinstance(side, int) else SIDE for side in self._input.shape[2:])

    def maps(self, images: Levels) -> Levels:
        """Maps (B, h, w) of images (B, H, W, 3), RGB, as 8-bit levels."""
        if self.gpu is not None:
            return self._maps_of_gpu(images, self.gpu)
        passes: list[Future[Levels]] = [long_work(_threads().submit(self.map, image)) for image in images]
        return np.stack([future.result() for future in passes])

    def map(self, image: Levels) -> Levels:
        """The map (h, w) of one image (H, W, 3)."""
        return self._map(image) if self.gpu is None else self.maps(image[None])[0]

    def move(self, device: "torch.device") -> None:
        """Run the network on a GPU from now on, or say why not."""
        from colocam.maps.torch_prior import Reading, UnfitError, pictures, torch_prior  # noqa: PLC0415 - torch loads slowly

        try:
            how = Reading((self._height, self._width), np.stack([MEAN, STD]), ROUNDING)
            images = pictures(*how.sides)
            self.gpu = torch_prior(self.path, device, how, images, self.maps(np.stack(images)))
        except UnfitError as error:
            _say_once(f"the prior {self.path} runs on the CPU, half a second a frame: {error}")

    def _maps_of_gpu(self, images: Levels, network: "TorchPrior") -> Levels:
        parts = [future.result() for future in network.start([self._resized(image) for image in images])]
        maps = np.concatenate([part.levels for part in parts])
        for at in np.flatnonzero([not valid for part in parts for valid in part.valid]):
            maps[at] = self._map(images[at])  # half precision may overflow; it also refuses what is no map
        return maps

    def _map(self, image: Levels) -> Levels:
        try:
            (output,) = self._session.run([self._output], {self._input.name: self._normalized(image)})
        except Exception as error:  # its errors have no common base
            raise ColocamError(f"onnxruntime cannot run the prior {self.path}: {first_line(error)}") from error
        return _levels(output, self.path)

    def _normalized(self, image: Levels) -> Float32Array:
        """(1, 3, h, w): divided by the maximum of the image, then by ImageNet's mean and standard deviation."""
        resized = self._resized(image)
        relative = resized.astype(np.float32) / np.float32(max(int(resized.max()), 1))
        values: Float32Array = ((relative - MEAN) / STD).astype(np.float32)
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None])

    def _resized(self, image: Levels) -> Levels:
        height, width = self._height, self._width
        shrinks = height <= len(image) and width <= image.shape[1]
        resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return np.asarray(resized, np.uint8)


def open_prior(path: str | Path, device: "torch.device | None" = None) -> Prior:
    """Open the ONNX file of a prior, and try it on one image.

    Args:
        path: of the file.
        device: of the network whose maps it weighs; if that is a GPU, the prior runs there, too.
    """
    path = require_prior(path)
    # One thread: what a pass computes depends on no number of cores.
    session = open_session(path, f"the prior {path}", WANTED, 1)
    images = session.get_inputs()
    shapes = ", ".join(f"{tensor.name} {tensor.shape} {tensor.type}" for tensor in images)
    shape = images[0].shape if len(images) == 1 else []
    sides = [side for side in shape[2:] if isinstance(side, int)]
    fits = len(shape) == 4 and shape[1] == 3 and (not isinstance(shape[0], int) or shape[0] == 1)
    if not fits or images[0].type != "tensor(float)" or not all(0 < side <= LARGEST for side in sides):
        raise ColocamError(f"{path} is not a prior: its input is {shapes or 'missing'}: {WANTED}")
    prior = Prior(path, session)
    prior.map(np.zeros((8, 8, 3), np.uint8))
    if device is not None and device.type == "cuda":
        prior.move(device)
    return prior


def require_prior(path: str | Path) -> Path:
    """The path of a prior, which must be a file."""
    path = Path(path)
    if not stored(path).is_file():
        raise ColocamError(f"no prior at {path}: {WANTED}")
    return path


def weigh_where_it_agrees(levels: Levels, seen: Levels) -> tuple[Levels, npt.NDArray[np.bool_]]:
    """Maps S' (B, M, M), and in which frames (B,) the prior agrees with the model; elsewhere S' is S.

    Args:
        levels: S (B, M, M) in 8 bits.
        seen: (B, h, w) what the prior sees of the same pixels, in 8 bits.
    """
    agrees = np.array([_correlation(level, one) >= AGREEMENT for level, one in zip(levels, seen, strict=True)], bool)
    weighed = levels.copy()
    for at in np.flatnonzero(agrees):
        weighed[at] = weigh_by_prior(levels[at], seen[at])
    return weighed, agrees


def weigh_by_prior(level: Levels, seen: Levels) -> Levels:
    """The map S' (M, M) of a map S (M, M) and of what the prior sees of the same pixels, (h, w), all in 8 bits."""
    product = level * _FACTORS[_resized_like(level, seen)]
    highest = float(product.max())
    if not highest:
        return level
    scaled: Levels = np.rint(product * (float(level.max()) / highest)).astype(np.uint8)
    return scaled


def _correlation(level: Levels, seen: Levels) -> float:
    """Pearson's, over the pixels of a map (M, M); 0 where one of both is the same everywhere."""
    there, prior = (one.astype(np.float64) - one.mean() for one in (level, _resized_like(level, seen)))
    spread = float(np.sqrt(np.square(there).sum() * np.square(prior).sum()))
    return float((there * prior).sum()) / spread if spread else 0.0


def _resized_like(level: Levels, seen: Levels) -> Levels:
    height, width = level.shape
    shrinks = height <= len(seen) and width <= seen.shape[1]
    resized = cv2.resize(seen, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    return np.asarray(resized, np.uint8)


def _levels(output: object, path: Path) -> Levels:
    """The map (h, w) of a network's output, in 8 bits, if it is one."""
    if not isinstance(output, np.ndarray) or output.dtype.kind != "f":
        raise ColocamError(f"{path} is not a prior: its first output is not an array of floats: {WANTED}")
    shape = output.shape
    is_one = len(shape) in {2, 3, 4} and all(side == 1 for side in shape[:-2])
    if not is_one or not all(1 <= side <= LARGEST for side in shape[-2:]):
        raise ColocamError(f"{path} is not a prior: its first output has the shape {shape}: {WANTED}")
    low, high = float(output.min()), float(output.max())
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # false for NaN
        raise ColocamError(f"{path} is not a prior: its first output has values from {low:.3g} to {high:.3g}: {WANTED}")
    whole: Levels = np.rint(255 * np.clip(output.reshape(shape[-2:]), 0, 1)).astype(np.uint8)
    return whole


@cache
def _say_once(text: str) -> None:
    say(text)


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that compute one pass each, shared by all priors."""
    return ThreadPoolExecutor(threads(), "prior")
