"""colocam: boxes, heat-maps and tracks in videos, learned from one tag per video.

>>> from colocam import Localizer, train                  # doctest: +SKIP
>>> run = train("videos", "runs/pets")                    # doctest: +SKIP
>>> for found in Localizer.load(run)("holiday.mp4"):      # doctest: +SKIP
...     print(found.pts, found.tag, found.box)
"""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.config import Config, load_config
    from colocam.errors import ColocamError
    from colocam.evaluation.prediction_evaluation import evaluate_predictions
    from colocam.evaluation.result import Evaluation, PredictionEvaluation
    from colocam.evaluation.run_evaluation import evaluate
    from colocam.inference import Localizer
    from colocam.training import train
    from colocam.types import Box, Clip, Localization
    from colocam.utils.extras import __version__

__all__ = [
    "Box",
    "Clip",
    "ColocamError",
    "Config",
    "Evaluation",
    "Localization",
    "Localizer",
    "PredictionEvaluation",
    "__version__",
    "evaluate",
    "evaluate_predictions",
    "load_config",
    "train",
]

__getattr__, __dir__ = lazy_names(  # torch is imported on first use
    __name__,
    {
        "Box": "colocam.types",
        "Clip": "colocam.types",
        "ColocamError": "colocam.errors",
        "Config": "colocam.config",
        "Evaluation": "colocam.evaluation.result",
        "Localization": "colocam.types",
        "Localizer": "colocam.inference",
        "PredictionEvaluation": "colocam.evaluation.result",
        "__version__": "colocam.utils.extras",
        "evaluate": "colocam.evaluation.run_evaluation",
        "evaluate_predictions": "colocam.evaluation.prediction_evaluation",
        "load_config": "colocam.config",
        "train": "colocam.training",
    },
)
