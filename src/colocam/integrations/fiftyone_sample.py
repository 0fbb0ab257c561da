"""FiftyOne: a localized video as a sample with the boxes and heat-maps of its frames (``pip install fiftyone``).

Localization tables hold no heat-maps; ``colocam export --to fiftyone`` writes the boxes of tables without FiftyOne.
"""

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from colocam.boxes.quantize import to_8bit
from colocam.inference.localizer import Localizer
from colocam.utils.extras import not_installed
from colocam.utils.files import atomic_path
from colocam.video.fence import probe_source

if TYPE_CHECKING:
    import fiftyone


def localized_sample(localizer: Localizer, video: str | Path, heatmaps: str | Path | None = None) -> "fiftyone.Sample":
    """Localize in a video; each frame has ``objects`` (track as ``index``) and, if asked for, ``heatmap``.

    >>> dataset = fiftyone.Dataset("pets")                                            # doctest: +SKIP
    >>> dataset.add_sample(localized_sample(localizer, "video.mp4", "heatmaps"))       # doctest: +SKIP

    Args:
        localizer: the model.
        video: a video file.
        heatmaps: folder for the heat-maps, one PNG of 8 bits per frame; None: no heat-maps.
    """
    try:
        import fiftyone  # noqa: PLC0415 - an extra that takes seconds
    except ModuleNotFoundError as error:
        raise not_installed(error, __name__) from error
    path = Path(video).absolute()
    source = probe_source(path)
    scale = np.array([source.width, source.height])
    sample = fiftyone.Sample(filepath=str(path))
    for index, group in groupby(localizer(path), lambda found: found.frame):
        found = list(group)
        detections = []
        for one in found:
            if one.box is not None:
                first, last = np.reshape(one.box, (2, 2)) / scale
                place = [*first.tolist(), *(last - first).tolist()]  # x, y, width, height
                stated = {"label": one.tag, "confidence": one.score, "index": one.track}
                detections.append(fiftyone.Detection(bounding_box=place, **stated))
        frame = fiftyone.Frame(objects=fiftyone.Detections(detections=detections))
        if heatmaps is not None:
            target = Path(heatmaps).absolute() / f"{path.stem}_{index:06d}.png"
            with atomic_path(target) as temporary:
                Image.fromarray(to_8bit(found[0].heatmap)).save(temporary)
            frame["heatmap"] = fiftyone.Heatmap(map_path=str(target), range=[0, 255])
        sample.frames[index + 1] = frame  # FiftyOne counts frames from 1
    return sample
