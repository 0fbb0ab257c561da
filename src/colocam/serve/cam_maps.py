"""CAMs of the classifier of a model, computed when a page asks for them."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from colocam.errors import ColocamError
from colocam.serve.film_index import open_film
from colocam.serve.film_results import small_levels
from colocam.types import Float32Array, Levels
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import FrameLayout

METHOD = "layercam"
KEPT = 512
"""Blocks of maps in memory; a block of 16 frames takes 64 KiB."""

CamFunction = Callable[[Levels, list[str]], Float32Array]
"""(Frames (B, S, S, 3), class of each) → maps (B, h, w) in 0–1."""


class OpenCam:
    """The CAM of a run folder.

    Attributes:
        size: S, side of the frames.
    """

    def __init__(self, path: Path, device: str | None = None) -> None:
        if not path.is_dir():
            raise ColocamError("LayerCAM needs the classifier: start the server with the run folder, not an ONNX file")
        from colocam.models.model_file import load_model  # noqa: PLC0415 - an ONNX file is shown without torch
        from colocam.utils.device import choose_device  # noqa: PLC0415

        model = load_model(path)
        self._device = choose_device(device)
        self._classifier = model.net.classifier.to(self._device)
        self._tags, self.size = model.card.tags, model.card.size

    def __call__(self, frames: Levels, tags: list[str]) -> Float32Array:
        """Maps (B, h, w) in 0–1 of frames (B, S, S, 3) for the class of each."""
        import torch  # noqa: PLC0415

        from colocam.cams import extract  # noqa: PLC0415
        from colocam.models.cam_formulas import min_max  # noqa: PLC0415

        images = torch.from_numpy(frames).to(self._device).permute(0, 3, 1, 2).float()
        classes = torch.tensor([self._tags.index(tag) for tag in tags], device=self._device)
        maps: Float32Array = min_max(extract(METHOD, self._classifier, images, classes)).cpu().numpy()
        return maps


class CamMaps:
    """CAMs of films, the last blocks kept; one block is computed at a time.

    Args:
        open_cam: opens the CAM of a model.
    """

    def __init__(self, open_cam: Callable[[Path], OpenCam]) -> None:
        self._open = open_cam
        self._lock = threading.Lock()
        self._cam: tuple[Path, OpenCam] | None = None
        self._blocks: OrderedDict[tuple[str, Path, int, int], bytes] = OrderedDict()

    def get(self, film: str, path: Path, model: Path, frames: list[int], tags: list[str]) -> bytes:
        """Maps of some frames, as the page gets heat maps.

        Args:
            film: id.
            path: of the film.
            model: run folder.
            frames: indices of the frames, ascending.
            tags: class of each.
        """
        key = (film, model, frames[0], frames[-1])
        with self._lock:
            if key not in self._blocks:
                if self._cam is None or self._cam[0] != model:
                    self._cam = model, self._open(model)
                self._blocks[key] = self._compute(self._cam[1], path, frames, tags)
                while len(self._blocks) > KEPT:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(key)
            return self._blocks[key]

    def _compute(self, cam: OpenCam, path: Path, frames: list[int], tags: list[str]) -> bytes:
        wanted = dict(zip(frames, tags, strict=True))
        with open_film(path, FrameLayout(cam.size, images=False)) as reader:
            choice = FrameChoice(frames=(frames[0], frames[-1] + 1))
            read = {one.index: np.array(one.resized) for one in reader.frames(choice) if one.index in wanted}
        if list(read) != frames:
            raise ColocamError(f"{path} changed while it was read: restart the server")
        maps = cam(np.stack(list(read.values())), tags)
        return b"".join(small_levels(one, cv2.INTER_LINEAR).tobytes() for one in maps)
