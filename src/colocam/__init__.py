"""colocam: boxes, heat-maps and tracks in videos, learnt from one tag per video.

>>> from colocam import Localizer, train                  # doctest: +SKIP
>>> run = train("videos", "runs/pets")                    # doctest: +SKIP
>>> for found in Localizer.load(run)("holiday.mp4"):      # doctest: +SKIP
...     print(found.pts, found.tag, found.box)
"""

from colocam.config import Config, load_config
from colocam.errors import ColocamError
from colocam.evaluation import evaluate
from colocam.inference import Localizer
from colocam.training import train
from colocam.types import Box, Clip, Localization

__all__ = ["Box", "Clip", "ColocamError", "Config", "Localization", "Localizer", "evaluate", "load_config", "train"]
