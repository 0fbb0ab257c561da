"""Labels of strangers, read in a limited child: a file that explodes in memory costs one line, not the process.

Tests: tests/labels/test_apart.py, tests/labels/test_damaged_labels.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from colocam.labels.corrections import Correction, read_corrections
from colocam.labels.importing import Imported, import_labels
from colocam.labels.labeled_videos import LeftOut
from colocam.utils.child_processes import CAN_START, Message
from colocam.utils.limited_child import run_limited, serve_function
from colocam.utils.locks import temporary_folder
from colocam.utils.progress import say

MEMORY = 1 << 30
"""Bytes that reading labels may take (Linux)."""
SECONDS = 120.0
"""That it may take where nobody can stop it."""
_FILE = "corrections.jsonl"
_CORRECTION = TypeAdapter(Correction)


def import_labels_apart(
    source: Path,
    from_: str,
    *,
    tables: Sequence[Path],
    scratch: Path | None = None,
    seconds: float | None = None,
    **options: Any,  # noqa: ANN401 - those of import_labels
) -> Imported:
    """As :func:`colocam.labels.import_labels`, whose other ``options`` must be what JSON can hold.

    Args:
        source: a file, a folder or a ZIP archive.
        from_: name of a format.
        tables: localization tables.
        scratch: folder for temporary files; by default that of ``source``.
        seconds: that reading may take; None: :data:`SECONDS`.
        options: see :func:`colocam.labels.import_labels`.
    """
    arguments = {"source": str(source), "from_": from_, "tables": list(map(str, tables)), **options}
    corrections, answer = _read_apart(labels_to_file.__name__, {"labels": arguments}, source, scratch, seconds)
    return Imported(corrections, LeftOut(answer["left_out"]), tuple(answer["strangers"]))


def read_corrections_apart(*paths: Path) -> list[Correction]:
    """As :func:`colocam.labels.read_corrections`."""
    arguments = {"paths": list(map(str, paths))}
    return _read_apart(corrections_to_file.__name__, arguments, paths[0], None, None)[0]


def _read_apart(
    function: str, arguments: Message, source: Path, scratch: Path | None, seconds: float | None
) -> tuple[list[Correction], Message]:
    with temporary_folder(scratch or source.parent) as folder:
        if CAN_START:
            answer = run_limited(
                __name__,
                function,
                arguments,
                name=str(source),
                folder=folder,
                memory=MEMORY,
                seconds=SECONDS if seconds is None else seconds,
            )
        else:
            say(f"warning: {source} is read without memory and time limits, which need Linux, macOS or WSL")
            answer = {task.__name__: task for task in (labels_to_file, corrections_to_file)}[function](
                folder, **arguments
            )
        with (folder / _FILE).open("rb") as file:
            return [_CORRECTION.validate_json(line) for line in file], answer


def main(control: int, life: int) -> None:
    """The limited child."""
    serve_function(control, life, labels_to_file, corrections_to_file)


def labels_to_file(folder: Path, labels: Message) -> Message:
    """Import labels in the limited child; the corrections are too many for an answer."""
    imported = import_labels(**labels)
    _write(folder, imported.corrections)
    return {"left_out": imported.left_out, "strangers": imported.strangers}


def corrections_to_file(folder: Path, paths: Sequence[str]) -> Message:
    """Read corrections in the limited child."""
    _write(folder, read_corrections(*paths))
    return {}


def _write(folder: Path, corrections: Sequence[Correction]) -> None:
    with (folder / _FILE).open("wb") as file:
        # One line each: the parent gives way to its other threads between two lines.
        file.writelines(_CORRECTION.dump_json(correction) + b"\n" for correction in corrections)
