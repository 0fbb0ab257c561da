"""What evaluations return and store as JSON, the numbers that training wrote, also for TensorBoard, and titles.

Tests: tests/evaluation/test_run_evaluation.py, tests/report/test_console.py.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeGuard, TypeVar

from pydantic import TypeAdapter, ValidationError

from colocam.config import METHODS
from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.evaluation.metrics.dense_scores import DenseScores
from colocam.evaluation.metrics.object_scores import Instances, ObjectScores
from colocam.evaluation.metrics.protocols import PROTOCOLS, Accuracy, CorLoc
from colocam.utils.extras import not_installed
from colocam.utils.files import parse_json
from colocam.utils.progress import say

MAIN = "colocam"
"""The method whose gain over the first one is reported."""
REMEDY = "evaluate the run again"
NOT_QUANTITIES = {"phase", "event", "epoch", "step"}
"""Entries of a record of ``metrics.jsonl`` that say where it belongs."""
T = TypeVar("T")
DENSE = ("dense", "dense-prior", "dense-refined", "dense-prior-refined")
"""Names of the files in a run folder: boxes of the model's maps, weighed by a prior or not, and of a segmenter."""
WITH = " + "
"""Stands between the name of a method and that of what was added to it."""
OBJECTS = "objects"
"""Name of the file with the worst frames of several objects and presence; after the name of a dense evaluation."""


def method_title(name: str) -> str:
    """Title of a CAM, a trained method or a training phase; the name itself where it is not registered.

    Where a prior weighed the maps, name and title end with `` + `` and its name.
    """
    name, *prior = name.split(WITH)
    return WITH.join([_title(name), *prior])


def _title(name: str) -> str:
    if name == "classifier":
        return "Classifier"
    if name in METHODS:
        return METHODS[name].title
    try:
        from colocam.cams import CAMS  # noqa: PLC0415 - scores of files need no torch
    except ModuleNotFoundError:  # without torch there are no CAMs
        return name
    return CAMS[name].title if name in CAMS else name


def refined_title(method: str, segmenter: str) -> str:
    """Title of a method whose boxes a segmenter refined, e.g. ``CoLo-CAM + MobileSAM``."""
    return f"{method_title(method)}{WITH}{segmenter}"


def dense_name(*, refined: bool, prior: bool) -> str:
    """The name of the files of a dense evaluation in a run folder."""
    return "dense" + "-prior" * prior + "-refined" * refined


def say_learned_from(card: Card) -> None:
    """Say so where a model learned from more than tags."""
    if card.prior is not None:
        say(f"note: this model learned from tags and {card.prior.name}, a network that sees where objects stand out")


def ordered_methods(names: Iterable[str]) -> list[str]:
    """CoLo-CAM last, the others as they come: an evaluation lists the source of the seeds first, the baseline."""
    return sorted(names, key=lambda name: name == MAIN)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of ``metrics.jsonl``; a line cut short by an interruption is skipped."""
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and {"phase", "event"} <= record.keys():
            records.append(record)
    return records


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value from JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def write_events(run: Path, out: Path | None = None) -> Path:
    """Write one event file for each phase and event of a run, e.g. ``OUT/colocam/train``; return ``OUT``.

    Earlier event files of this function in these folders are replaced, so that a longer run can be converted again.

    Args:
        run: run folder, finished or not.
        out: folder for the event files; None: ``RUN/tensorboard``.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415 - an extra
        from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: PLC0415
        from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise not_installed(error, "TensorBoard") from error
    path, out = run / "metrics.jsonl", out or run / "tensorboard"
    if not path.is_file():
        raise ColocamError(f"{run} has no metrics.jsonl: give a run folder that 'colocam train' wrote")
    # Times of the steps are not stored: one step is shown as one second.
    curves: dict[str, list[Event]] = {}
    for folder, step, values in _points(path):
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        curves.setdefault(folder, []).append(Event(wall_time=float(step), step=step, summary=summary))
    for folder, events in curves.items():
        for old in (out / folder).glob("events.out.tfevents.*.colocam"):
            old.unlink()
        writer = EventFileWriter(str(out / folder), filename_suffix=".colocam")
        for event in events:
            writer.add_event(event)
        writer.close()
    return out


def _points(path: Path) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Folder, step and numbers of each record."""
    for record in read_metrics(path):
        values = {
            name: float(value) for name, value in record.items() if name not in NOT_QUANTITIES and is_number(value)
        }
        if values and isinstance(record.get("step"), int):
            yield f"{record['phase']}/{record['event']}", record["step"], values


class Stored:
    """A result that is stored as JSON."""

    __slots__ = ()
    FORMAT: ClassVar[int] = 2
    """Number of the layout that is written."""

    def to_json(self) -> dict[str, Any]:
        """The result as plain JSON; unknown values are left out."""
        return {"format": self.FORMAT, **plain(self)}


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
        empty_frames: labeled frames without the object; of a run.
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


@dataclass(frozen=True, slots=True)
class Evaluation(Stored):
    """Result of :func:`colocam.evaluate`: all methods of a run.

    Attributes:
        methods: method → protocol → CorLoc; CAMs first, the source of the seeds before the others.
        classification: accuracy of the classifier.
        data: what was evaluated.
        instances: scores on the frames with several true boxes; None without such frames.
        refined: segmenter → method → CorLoc of the boxes of its masks; None without a segmenter.
        confusion: tag → class that was found → frames, without zeros; None in files of earlier versions.
        objects: all boxes, presence and tracks of whole shots; None where the truth has none of them.
    """

    methods: Mapping[str, Mapping[str, CorLoc]]
    classification: Accuracy | None
    data: EvaluatedData
    instances: Instances | None = None
    refined: Mapping[str, Mapping[str, CorLoc]] | None = None
    confusion: Mapping[str, Mapping[str, int]] | None = None
    objects: ObjectScores | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any], source: str | Path = "the evaluation") -> "Evaluation":
        """Read the JSON of any format; ``source`` is named in errors."""
        if (number := value.get("format", 1)) not in (1, cls.FORMAT):  # a list, which may stand there, is in no set
            raise ColocamError(f"{source} has format {number}; this colocam reads up to {cls.FORMAT}: update colocam")
        try:
            current = _from_format_1(value) if number == 1 else value
        except (AttributeError, TypeError) as error:  # other shapes than format 1 has
            raise ColocamError(f"{source} is not an evaluation: {REMEDY}") from error
        return _checked(cls, current, source)


@dataclass(frozen=True, slots=True)
class PredictionEvaluation(Stored):
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


def read_evaluation(path: Path) -> Evaluation | None:
    """The evaluation stored in a run folder; None where there is none."""
    return Evaluation.from_json(read_object(path), path) if path.exists() else None


def read_dense(path: Path) -> "DenseEvaluation | None":
    """The dense evaluation stored in a run folder; None where there is none."""
    return _checked(DenseEvaluation, read_object(path), path) if path.exists() else None


def read_object(path: Path, remedy: str = REMEDY) -> dict[str, Any]:
    """The JSON object in a file of a run folder."""
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is not valid JSON ({error}): {remedy}") from error
    if not isinstance(value, dict):
        raise ColocamError(f"{path} contains no JSON object: {remedy}")
    return value


def _checked(kind: type[T], value: object, source: str | Path) -> T:
    """A value from JSON as a dataclass."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ColocamError(f"{source}: {where}: {first['msg']}: {REMEDY}") from error


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


@dataclass(frozen=True, slots=True)
class DenseRow:
    """One shot, or all shots together.

    Attributes:
        name: of the shot, or of the mean.
        frames: number of frames that were processed.
        boxed_frames: number of frames with a true box.
        without_tag: scores where the model finds the class.
        with_tag: scores where the tag is given.
        true_jitter: mean of 1 − IoU of the true boxes of neighboring frames; None without such a pair.
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
class DenseEvaluation(Stored):
    """Result of :func:`colocam.evaluation.dense.evaluate_dense`.

    Attributes:
        manifest: what was read.
        smooth: offline, online or none.
        shots: one row per shot.
        over_shots: mean over shots, each with the same weight.
        over_frames: mean over the frames of all shots; the number of switches is their sum.
        unknown: tag that the model does not know → shots that were left out.
        refined: name of the segmenter that gave the boxes; None where they come from the model's maps.
        prior: name of the prior that weighed these maps; None: none did.
        objects: all boxes, presence and tracks, with the tag; None where the truth has none of them.
    """

    manifest: str
    smooth: str
    shots: tuple[DenseRow, ...]
    over_shots: DenseRow
    over_frames: DenseRow
    unknown: Mapping[str, tuple[str, ...]]
    refined: str | None = None
    prior: str | None = None
    objects: ObjectScores | None = None
    FORMAT: ClassVar[int] = 1

    @property
    def rows(self) -> tuple[DenseRow, ...]:
        """The shots, then their mean, then the mean over all frames."""
        return (*self.shots, self.over_shots, self.over_frames)
