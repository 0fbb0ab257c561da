"""Exact frames of films, read by the reader that the model uses, and CAMs of them, both made when a page asks.

A reader can only go forward, so each film keeps one open. Frames just behind it are kept for steps backward; for a
frame further back the film is opened anew.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from colocam.errors import ColocamError
from colocam.serve.film_data import LIMITS, jpeg, open_film, small_levels
from colocam.types import Float32Array, Levels, VideoFrame
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import FrameLayout

BEHIND = 16
"""Frames before the last one that was read, which are kept."""
AHEAD = 2
"""Frames that are decoded at once: the one that a page asks for, and the next. More would delay the first one."""
QUALITY = 95
STILLS = 128
"""JPEG files in memory, of up to a few megabytes each; browsers keep what they have seen themselves."""
OPEN_FILMS = 2
"""Films whose reader stays open."""
PATIENCE = 20.0
"""Seconds that a request waits for others of the same film, so that a decoder that hangs holds few threads for long."""
METHOD = "layercam"
BLOCKS = 512
"""Blocks of maps in memory; a block of 16 frames takes 64 KiB."""


class _Walker:
    """Reads one film forward; one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._dropped = False
        self._path = path
        self._stack = ExitStack()
        self._frames: Iterator[VideoFrame] = iter(())
        self._kept: deque[VideoFrame] = deque(maxlen=BEHIND)
        self._next = -1

    def read(self, index: int) -> VideoFrame | None:
        """The frame of an index; None if it cannot be decoded."""
        if not self._lock.acquire(timeout=PATIENCE):
            raise ColocamError(f"cannot read {self._path} now: its decoder is busy or hangs: try again in a minute")
        try:
            return self._read(index)
        except ColocamError:
            self._close()
            raise
        finally:
            self._lock.release()
            if self._dropped:
                self.drop()

    def drop(self) -> None:
        """End reading; where another thread reads, at the end of its frame, so that nobody waits for a decoder."""
        self._dropped = True
        if self._lock.acquire(blocking=False):
            self._close()
            self._lock.release()

    def _read(self, index: int) -> VideoFrame | None:
        for frame in self._kept:
            if frame.index == index:
                return frame
        # Reading on converts each frame to RGB; opening anew decodes from the begin, but converts only the last ones.
        if self._next < 0 or index < self._next or index - self._next > self._next + 2 * BEHIND:
            self._open(max(0, index - BEHIND + 1))
        for frame in self._frames:
            self._kept.append(frame)
            self._next = frame.index + 1
            if frame.index >= index:
                return frame if frame.index == index else None
        return None

    def _open(self, first: int) -> None:
        self._close()
        reader = self._stack.enter_context(open_film(self._path, limits=replace(LIMITS, ahead=AHEAD)))
        self._frames, self._next = reader.frames(FrameChoice(frames=(first, None))), first

    def _close(self) -> None:
        self._frames, self._next = iter(()), -1
        self._kept.clear()
        self._stack.close()


class Stills:
    """JPEG files of single frames, those asked for last kept in memory; may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walkers: OrderedDict[str, _Walker] = OrderedDict()
        self._cached = lru_cache(STILLS)(self._read)

    def get(self, film: str, path: Path, index: int) -> bytes | None:
        """The frame ``index`` of a film, None if it has no such frame that can be decoded."""
        return self._cached(film, path, index)

    def close(self) -> None:
        """Close all films."""
        with self._lock:
            walkers = list(self._walkers.values())
        for walker in walkers:
            walker.drop()

    def _read(self, film: str, path: Path, index: int) -> bytes | None:
        with self._lock:
            walker = self._walkers.pop(film, None) or _Walker(path)
            self._walkers[film] = walker
            dropped = [self._walkers.popitem(last=False)[1] for _ in range(len(self._walkers) - OPEN_FILMS)]
        for old in dropped:
            old.drop()
        frame = walker.read(index)
        return None if frame is None else jpeg(frame.image, QUALITY)


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

    def __call__(self, frames: Levels, tags: Sequence[str]) -> Float32Array:
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
        self._open = lru_cache(1)(open_cam)
        self._lock = threading.Lock()
        self._cached = lru_cache(BLOCKS)(self._compute)

    def get(self, film: str, path: Path, model: Path, frames: tuple[int, ...], tags: tuple[str, ...]) -> bytes:
        """Maps of some frames, as the page gets heat maps.

        Args:
            film: id.
            path: of the film.
            model: run folder.
            frames: indices of the frames, ascending.
            tags: class of each.
        """
        with self._lock:
            return self._cached(film, path, model, frames, tags)

    def _compute(self, _film: str, path: Path, model: Path, frames: tuple[int, ...], tags: tuple[str, ...]) -> bytes:
        cam = self._open(model)
        with open_film(path, FrameLayout(cam.size, images=False)) as reader:
            choice = FrameChoice(frames=(frames[0], frames[-1] + 1))
            read = {one.index: np.array(one.resized) for one in reader.frames(choice) if one.index in frames}
        if tuple(read) != frames:
            raise ColocamError(f"{path} changed while it was read: restart the server")
        maps = cam(np.stack(list(read.values())), tags)
        return b"".join(small_levels(one, cv2.INTER_LINEAR).tobytes() for one in maps)
