"""What the evaluation of dense shots returns, and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from colocam.errors import ColocamError
from colocam.evaluation.result import plain
from colocam.metrics.dense_scores import DenseScores
from colocam.utils.files import parse_json

PLAIN, REFINED = "dense", "dense-refined"
"""Names of the files in a run folder: boxes learnt from tags alone, and boxes of a segmenter."""


@dataclass(frozen=True, slots=True)
class DenseRow:
    """One shot, or all shots together.

    Attributes:
        name: of the shot, or of the mean.
        frames: number of frames that were processed.
        boxed_frames: number of frames with a true box.
        without_tag: scores where the model finds the class.
        with_tag: scores where the tag is given.
        true_jitter: mean of 1 − IoU of the true boxes of neighbouring frames; None without such a pair.
        tag: the true class of a shot; None for a mean.
    """

    name: str
    frames: int
    boxed_frames: int
    without_tag: DenseScores
    with_tag: DenseScores
    true_jitter: float | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class DenseEvaluation:
    """Result of :func:`colocam.evaluation.dense.evaluate_dense`.

    Attributes:
        manifest: what was read.
        smooth: offline, online or none.
        shots: one row per shot.
        over_shots: mean over shots, each with the same weight.
        over_frames: mean over the frames of all shots; the number of switches is their sum.
        unknown: tag that the model does not know → shots that were left out.
        refined: name of the segmenter that gave the boxes; None where they come from tags alone.
    """

    manifest: str
    smooth: str
    shots: tuple[DenseRow, ...]
    over_shots: DenseRow
    over_frames: DenseRow
    unknown: Mapping[str, tuple[str, ...]]
    refined: str | None = None

    @property
    def rows(self) -> tuple[DenseRow, ...]:
        """The shots, then their mean, then the mean over all frames."""
        return (*self.shots, self.over_shots, self.over_frames)

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON; unknown values are left out."""
        return {"format": 1, **plain(self)}


_READER = TypeAdapter(DenseEvaluation)


def read_dense(path: Path) -> DenseEvaluation | None:
    """The dense evaluation stored in a run folder; None where there is none."""
    if not path.exists():
        return None
    try:
        return _READER.validate_python(parse_json(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ColocamError(f"{path}: {where}: {first['msg']}: evaluate the run again") from error
    except ValueError as error:
        raise ColocamError(f"{path} is not valid JSON ({error}): evaluate the run again") from error
