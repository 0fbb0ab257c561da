"""Localizer: open a trained model, put in a video, get a :class:`Localization` per frame."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import torch

from colocam.boxes.extract import largest_boxes, largest_mask
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes
from colocam.data.video import VideoFrame, decode
from colocam.models import foreground
from colocam.models.store import Model, load_model
from colocam.run import choose_device
from colocam.types import Box, Localization


class Localizer:
    """Says what is in each frame of a video and where.

    Example:
        >>> localizer = Localizer.load("runs/pets")          # doctest: +SKIP
        >>> for found in localizer("holiday.mp4"):           # doctest: +SKIP
        ...     print(found.pts, found.tag, found.box)
    """

    def __init__(
        self, model: Model, device: str | torch.device = "cpu", batch: int = 16, *, masks: bool = False
    ) -> None:
        self.card = model.card
        self.device = torch.device(device)
        self.net = model.net.to(self.device).eval()
        self.batch = batch
        self.masks = masks

    @classmethod
    def load(cls, run: str | Path, device: str | None = None, batch: int = 16, *, masks: bool = False) -> "Localizer":
        """Open the model of a run folder; without a device, the GPU if there is one; ``masks`` also gives outlines."""
        return cls(load_model(Path(run)), choose_device(device), batch, masks=masks)

    @property
    def tags(self) -> tuple[str, ...]:
        """The classes this model knows."""
        return self.card.tags

    def __call__(self, video: str | Path) -> Iterator[Localization]:
        """Localise in every frame of a video file, in order, holding only one batch in memory."""
        for _, found in self.stream(decode(Path(video))):
            yield found

    def stream(self, frames: Iterable[VideoFrame]) -> Iterator[tuple[VideoFrame, Localization]]:
        """The same for frames that are already decoded; each comes back with what was found in it."""
        frames = iter(frames)
        while batch := list(islice(frames, self.batch)):
            yield from zip(batch, self._localize(batch), strict=True)

    @torch.inference_mode()
    def _localize(self, batch: list[VideoFrame]) -> list[Localization]:
        size = self.card.size
        pictures = np.stack([cv2.resize(f.image, (size, size), interpolation=cv2.INTER_AREA) for f in batch])
        logits, map_logits = self.net(torch.from_numpy(pictures).permute(0, 3, 1, 2).to(self.device))
        probabilities, classes = logits.float().softmax(dim=1).max(dim=1)
        maps = foreground(map_logits)
        boxes, found = largest_boxes(maps, self.card.threshold)
        heat = maps.cpu().numpy()
        results = []
        for i, frame in enumerate(batch):
            height, width = frame.image.shape[:2]
            box, score, mask = None, 0.0, None
            if found[i]:
                x1, y1, x2, y2 = boxes[i].astype(int)
                score = float(heat[i, y1 : y2 + 1, x1 : x2 + 1].mean())
                box = Box(*scale_boxes(boxes[i : i + 1], (size, size), (width, height))[0].tolist())
                if self.masks:
                    mask = largest_mask(to_8bit(maps[i]).cpu().numpy(), self.card.threshold, (width, height))
            results.append(
                Localization(
                    frame=frame.index,
                    pts=frame.pts,
                    tag=self.tags[int(classes[i])],
                    probability=float(probabilities[i]),
                    box=box,
                    score=score,
                    heatmap=heat[i],
                    mask=mask,
                )
            )
        return results
