"""Training curves for TensorBoard: event files made from ``metrics.jsonl``."""

from collections.abc import Iterator
from pathlib import Path

from colocam.errors import ColocamError
from colocam.evaluation.result import is_number, read_metrics
from colocam.utils.extras import not_installed

_PLACE = {"phase", "event", "epoch", "step"}


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
        values = {name: float(value) for name, value in record.items() if name not in _PLACE and is_number(value)}
        if values and isinstance(record.get("step"), int):
            yield f"{record['phase']}/{record['event']}", record["step"], values
