"""The most doubtful frames, from ``review.npz``: the frame, then the frame with map and box, and the reason."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.drawing.overlay import draw_localization
from colocam.report.gallery import EDGE, Case, CaseImage, address, box_of_row, enlarge, explain_damage, read_images

QUALITY = 80


def doubtful(path: Path) -> list[Case]:
    """Draw the frames stored in ``path``, in their order."""
    with explain_damage(path, "run 'colocam review' again"):
        return _doubtful(*read_images(path))


def _doubtful(arrays: dict[str, npt.NDArray[Any]], meta: list[dict[str, Any]]) -> list[Case]:
    cases = []
    for i, told in enumerate(meta):
        image, scale = enlarge(arrays["images"][i], EDGE)
        box = box_of_row(arrays["boxes"][i], scale)
        heat = arrays["heatmaps"][i].astype(np.float32) / 255
        where = f"frame {told['frame']} of {told['clip']}"
        drawn = address(draw_localization(image, heat, box), QUALITY)
        doubt = f"doubt {float(told['doubt']):.2f}: {told['reason']}"
        images = (
            CaseImage("Frame", address(image, QUALITY), where),
            CaseImage("Map and box", drawn, f"{where}: {doubt}", doubt, right=False),
        )
        probability, predicted = float(told["probability"]), str(told["predicted"])
        cases.append(Case(str(told["tag"]), str(told["clip"]), int(told["frame"]), predicted, probability, images))
    return cases
