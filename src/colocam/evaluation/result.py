"""What an evaluation returns, and its JSON.

Format 2 (format 1 had no number): ``methods`` → method → protocol → CorLoc, with the values per tag under ``classes``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from colocam.errors import ColocamError
from colocam.metrics.protocols import PROTOCOLS
from colocam.metrics.scores import Accuracy, CorLoc, Instances
from colocam.utils.files import parse_json

FORMAT = 2
"""Number of the JSON layout that is written."""


@dataclass(frozen=True, slots=True)
class EvaluatedData:
    """What was evaluated.

    Attributes:
        split: train, val or test.
        frames: frames with at least one true box.
        videos: videos that they come from.
        clips: clips that they come from.
        boxes: true boxes in them.
        classes: tags of the data.
        empty_frames: labelled frames without the object; of a run.
        missing: frames without a prediction, which count as wrong; of predictions.
        validation_frames: validation frames that chose the threshold ``validation``; of predicted maps.
        threshold_maps: maps that chose the threshold ``tags-only``; of predicted maps.
    """

    split: str
    frames: int
    videos: int
    clips: int | None = None
    boxes: int | None = None
    classes: int | None = None
    empty_frames: int | None = None
    missing: int | None = None
    validation_frames: int | None = None
    threshold_maps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The known values as plain JSON."""
        found: dict[str, Any] = plain(self)
        return found


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of :func:`colocam.evaluate`: all methods of a run.

    Attributes:
        methods: method → protocol → CorLoc; CAMs first, the source of the seeds before the others.
        classification: accuracy of the classifier.
        data: what was evaluated.
        instances: scores on the frames with several true boxes; None without such frames.
        refined: segmenter → method → CorLoc of the boxes of its masks; None without a segmenter.
    """

    methods: Mapping[str, Mapping[str, CorLoc]]
    classification: Accuracy | None
    data: EvaluatedData
    instances: Instances | None = None
    refined: Mapping[str, Mapping[str, CorLoc]] | None = None

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON; unknown values are left out."""
        return {"format": FORMAT, **plain(self)}

    @classmethod
    def from_json(cls, value: object, source: str | Path = "the evaluation") -> "Evaluation":
        """Read the JSON of any format; ``source`` is named in errors."""
        remedy = "evaluate the run again"
        if not isinstance(value, Mapping):
            raise ColocamError(f"{source} holds no JSON object: {remedy}")
        if (number := value.get("format", 1)) not in (1, FORMAT):  # a list, which may stand there, is in no set
            raise ColocamError(f"{source} has format {number}, but this colocam reads up to {FORMAT}: update colocam")
        try:
            return _READER.validate_python(_from_format_1(value) if number == 1 else value)
        except (AttributeError, TypeError) as error:  # other shapes than format 1 has
            raise ColocamError(f"{source} is not an evaluation: {remedy}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ColocamError(f"{source}: {where}: {first['msg']}: {remedy}") from error


_READER = TypeAdapter(Evaluation)


@dataclass(frozen=True, slots=True)
class PredictionEvaluation:
    """Result of :func:`colocam.evaluate_predictions`: boxes or maps of any method.

    Attributes:
        data: what was evaluated.
        max_box_acc: share of right frames at the best threshold, by least IoU, and their mean.
        boxes: CorLoc of predicted boxes; all protocols are equal, since there is no threshold to choose.
        maps: protocol → CorLoc of predicted maps.
        classification: accuracy of the predicted tags, where there are any.
        instances: scores of predicted boxes on the frames with several true boxes.
        pxap: average precision of the pixels of predicted maps, where masks are given.
    """

    data: EvaluatedData
    max_box_acc: Mapping[str, float]
    boxes: CorLoc | None = None
    maps: Mapping[str, CorLoc] | None = None
    classification: Accuracy | None = None
    instances: Instances | None = None
    pxap: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON; unknown values are left out."""
        return {"format": FORMAT, **plain(self)}


def read_evaluation(path: Path) -> Evaluation | None:
    """The evaluation stored in a run folder; None where there is none."""
    if not path.exists():
        return None
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is not valid JSON ({error}): evaluate the run again") from error
    return Evaluation.from_json(value, path)


def plain(value: Any) -> Any:  # noqa: ANN401 - any part of a result
    """A result as plain JSON: attributes that are None are left out, classes without frames stay None."""
    if is_dataclass(value):
        named = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: plain(entry) for name, entry in named if entry is not None}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, tuple) else value


def current_corloc(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of one CorLoc in the current format; in format 1 tags stood beside the other keys."""
    if isinstance(cell.get("classes"), Mapping):
        return dict(cell)
    known = {field.name for field in fields(CorLoc)} - {"classes"}
    tags = {key: value for key, value in cell.items() if key not in known}
    return {**{key: value for key, value in cell.items() if key in known}, "classes": tags}


def _from_format_1(value: Mapping[str, Any]) -> dict[str, Any]:
    methods = {
        name: {protocol: current_corloc(cell) for protocol, cell in entry.items()}
        for name, entry in value.items()
        if isinstance(entry, Mapping) and PROTOCOLS.keys() & entry.keys()
    }
    classification = value.get("classification")
    if isinstance(classification, Mapping) and "per_class" in classification:
        classification = {**classification, "classes": classification["per_class"]}
    return {
        "methods": methods,
        "classification": classification,
        "data": value.get("data"),
        "instances": value.get("instances"),
    }
