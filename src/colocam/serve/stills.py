"""Exact frames of videos, read by the reader that the model uses, and CAMs of them, both made when a page asks.

A reader can only go forward, so each video keeps one open. Frames just behind it are kept for steps backward; for a
frame further back the video is opened anew.

Tests: tests/serve/test_fenced_videos.py, tests/serve/test_fairness.py.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from colocam.errors import ColocamError
from colocam.serve.video_data import LIMITS, jpeg, open_fenced, small_levels
from colocam.types import Image, VideoFrame
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import FrameLayout

if TYPE_CHECKING:
    from colocam.models.model_file import Model

BEHIND = 16
"""Frames before the last one that was read, which are kept."""
AHEAD = 2
"""Frames that are decoded at once: the one that a page asks for, and the next. More would delay the first one."""
QUALITY = 95
OPEN_VIDEOS = 2
"""Videos whose reader stays open."""
PATIENCE = 20.0
"""Seconds that a request waits for others of the same video: a decoder that hangs holds few threads for long."""
METHOD = "layercam"


class _Walker:
    """Reads one video forward; one thread at a time."""

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
        reader = self._stack.enter_context(open_fenced(self._path, limits=replace(LIMITS, ahead=AHEAD)))
        self._frames, self._next = reader.frames(FrameChoice(frames=(first, None))), first

    def _close(self) -> None:
        self._frames, self._next = iter(()), -1
        self._kept.clear()
        self._stack.close()


class Stills:
    """JPEG files of single frames; may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walkers: OrderedDict[str, _Walker] = OrderedDict()

    def get(self, video: str, path: Path, index: int) -> bytes | None:
        """The frame ``index`` of a video as JPEG, None if it has no such frame that can be decoded."""
        image = self.image(video, path, index)
        return None if image is None else jpeg(image, QUALITY)

    def image(self, video: str, path: Path, index: int) -> Image | None:
        """The frame ``index`` (H, W, 3) of a video, None if it has no such frame that can be decoded."""
        with self._lock:
            walker = self._walkers.pop(video, None) or _Walker(path)
            self._walkers[video] = walker
            dropped = [self._walkers.popitem(last=False)[1] for _ in range(len(self._walkers) - OPEN_VIDEOS)]
        for old in dropped:
            old.drop()
        frame = walker.read(index)
        return None if frame is None else frame.image

    def close(self) -> None:
        """Close all videos."""
        with self._lock:
            walkers = list(self._walkers.values())
        for walker in walkers:
            walker.drop()


class CamMaps:
    """CAMs of videos; one block of frames is computed at a time.

    Args:
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """

    def __init__(self, device: str | None = None) -> None:
        self._device = device
        self._open = lru_cache(1)(self._load)
        self._lock = threading.Lock()

    def get(self, path: Path, model: Path, frames: Sequence[int], tags: Sequence[str]) -> bytes:
        """Maps of some frames of a video, as the page gets heat maps.

        Args:
            path: of the video.
            model: run folder.
            frames: indices of the frames, ascending.
            tags: class of each.
        """
        with self._lock:
            return self._compute(self._open(model), path, frames, tags)

    def _load(self, path: Path) -> "Model":
        if not path.is_dir():
            raise ColocamError("LayerCAM needs the classifier: start the server with the run folder, not an ONNX file")
        from colocam.models.model_file import load_model  # noqa: PLC0415 - an ONNX file is shown without torch
        from colocam.utils.device import choose_device  # noqa: PLC0415

        model = load_model(path)
        model.net.classifier.to(choose_device(self._device))
        return model

    def _compute(self, model: "Model", path: Path, frames: Sequence[int], tags: Sequence[str]) -> bytes:
        import torch  # noqa: PLC0415 - as above

        from colocam.cams import extract  # noqa: PLC0415
        from colocam.models.cam_formulas import min_max  # noqa: PLC0415

        choice = FrameChoice(frames=(frames[0], frames[-1] + 1))
        with open_fenced(path) as reader:
            small = reader.frames(choice, FrameLayout(model.card.size, images=False))
            read = {frame.index: np.array(frame.resized) for frame in small if frame.index in frames}
        if list(read) != list(frames):
            raise ColocamError(f"{path} changed while it was being read: restart the server")
        classifier = model.net.classifier
        device = next(classifier.parameters()).device
        images = torch.from_numpy(np.stack(list(read.values()))).to(device).permute(0, 3, 1, 2).float()
        classes = torch.tensor([model.card.tags.index(tag) for tag in tags], device=device)
        maps = min_max(extract(METHOD, classifier, images, classes)).cpu().numpy()
        return b"".join(small_levels(heat, cv2.INTER_LINEAR).tobytes() for heat in maps)
