"""Read labels of a stranger in a process of their own, with limits of memory and time: a server goes on answering."""

import gc
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from colocam.errors import ColocamError
from colocam.labels.corrections import Correction, read_corrections
from colocam.labels.imported import LeftOut
from colocam.labels.importing import Imported, import_labels
from colocam.utils.child_processes import ChildProcess, Parent
from colocam.utils.extensions import load_extensions
from colocam.utils.locks import temporary_folder
from colocam.video.decoder_child import limit_memory

MEMORY = 1 << 30
"""Bytes that reading may take (Linux)."""
SECONDS = 120.0
_CORRECTION = TypeAdapter(Correction)


def import_labels_apart(source: Path, from_: str, *, tables: Sequence[Path], **options: Any) -> Imported:  # noqa: ANN401
    """As :func:`colocam.labels.import_labels`, whose other ``options`` must be what JSON can hold."""
    asked = {"source": str(source), "from_": from_, "tables": list(map(str, tables)), **options}
    corrections, left_out = _apart(source, {"labels": asked})
    return Imported(corrections, LeftOut(left_out))


def read_corrections_apart(*paths: Path) -> list[Correction]:
    """As :func:`colocam.labels.read_corrections`."""
    return _apart(paths[0], {"corrections": list(map(str, paths))})[0]


def _apart(source: Path, message: dict[str, Any]) -> tuple[list[Correction], dict[str, int]]:
    with temporary_folder(source.parent) as folder:
        child = ChildProcess("colocam.labels.apart")
        try:
            with suppress(OSError):  # it ended at once: see below
                child.channel.send({**message, "named": str(source), "folder": str(folder), "memory": MEMORY})
            if not child.channel.ready(SECONDS):
                raise ColocamError(f"{source}: not read within {SECONDS:g} s: split the file")
            answer = child.channel.receive()
            if answer is None:
                raise ColocamError(f"{source}: reading it ended with {child.how_it_ended()}: split the file")
        finally:
            child.kill()
        if answer["problem"]:
            raise ColocamError(answer["problem"])
        with (folder / "found").open("rb") as file:
            return [_CORRECTION.validate_json(line) for line in file], answer["left_out"]


def main(control: int, life: int) -> None:
    """Do what the parent asks for, once."""
    parent = Parent(control, life)
    asked = parent.receive()
    if asked is None:
        return
    folder, memory = Path(asked["folder"]), asked["memory"]
    gc.disable()  # millions of labels, none of them in a circle; the process ends after this one file
    tempfile.tempdir = str(folder)  # the parent removes what is left in it
    try:
        load_extensions()
        limit_memory(memory)
        if "labels" in asked:
            corrections, left_out = import_labels(**asked["labels"])
        else:
            corrections, left_out = read_corrections(*asked["corrections"]), LeftOut()
        with (folder / "found").open("wb") as file:
            # One line each: the parent gives way to its other threads between two lines.
            file.writelines(_CORRECTION.dump_json(one) + b"\n" for one in corrections)
        answer = {"problem": "", "left_out": left_out}
    except ColocamError as error:
        answer = {"problem": str(error)}
    except MemoryError:
        answer = {"problem": f"{asked['named']}: takes more than {memory >> 20} MiB of memory: split the file"}
    parent.send(answer)
