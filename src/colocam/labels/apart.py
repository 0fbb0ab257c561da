"""Read labels of a stranger in a process of their own, with limits of memory and time: a server goes on answering."""

import dataclasses
import gc
import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError
from colocam.labels.corrections import Correction, read_corrections
from colocam.labels.imported import LeftOut
from colocam.labels.importing import Imported, import_labels
from colocam.types import Box
from colocam.utils.child_processes import Channel, ChildProcess
from colocam.utils.extensions import load_extensions
from colocam.utils.locks import temporary_folder
from colocam.video.decoder_child import limit_memory

MEMORY = 1 << 30
"""Bytes that reading may take (Linux)."""
SECONDS = 120.0


def import_labels_apart(source: Path, from_: str, *, tables: Sequence[Path], **options: Any) -> Imported:  # noqa: ANN401
    """As :func:`colocam.labels.import_labels`, whose other ``options`` must be what JSON can hold."""
    asked = {"source": str(source), "from_": from_, "tables": list(map(str, tables)), **options}
    corrections, left_out = _apart(source, {"do": "labels", **asked})
    return Imported(corrections, LeftOut(left_out))


def read_corrections_apart(*paths: Path) -> list[Correction]:
    """As :func:`colocam.labels.read_corrections`."""
    return _apart(paths[0], {"do": "corrections", "paths": list(map(str, paths))})[0]


def _apart(source: Path, message: dict[str, Any]) -> tuple[list[Correction], dict[str, int]]:
    with temporary_folder(source.parent) as folder:
        child = ChildProcess("colocam.labels.apart")
        try:
            with suppress(OSError):  # it ended at once: see below
                child.channel.send({**message, "folder": str(folder), "memory": MEMORY})
            if not child.channel.ready(SECONDS):
                raise ColocamError(f"{source}: not read within {SECONDS:g} s: split the file")
            answer = child.channel.receive()
            if answer is None:
                raise ColocamError(f"{source}: reading it ended with {child.how_it_ended()}: split the file")
        finally:
            child.kill()
        if answer["problem"]:
            raise ColocamError(answer["problem"])
        with (folder / "found").open(encoding="utf-8") as file:
            return [_correction(*json.loads(line)) for line in file], answer["left_out"]


def main(control: int, life: int) -> None:
    """Do what the parent asks for, once."""
    channel = Channel.to_parent(control, life)
    asked = channel.receive()
    if asked is None:
        return
    folder, memory = Path(asked.pop("folder")), asked.pop("memory")
    gc.disable()  # millions of labels, none of them in a circle; the process ends after this one file
    tempfile.tempdir = str(folder)  # the parent removes what is left in it
    try:
        load_extensions()
        limit_memory(memory)
        left_out = _find(folder / "found", **asked)
        answer = {"problem": "", "left_out": left_out}
    except ColocamError as error:
        answer = {"problem": str(error)}
    except MemoryError:
        named = asked.get("source") or asked["paths"][0]
        answer = {"problem": f"{named}: takes more than {memory >> 20} MiB of memory: split the file"}
    channel.send(answer)


def _find(target: Path, do: str, **options: Any) -> dict[str, int]:  # noqa: ANN401 - of the two functions
    """Write one line per correction; return what was left out."""
    found = import_labels(**options) if do == "labels" else Imported(read_corrections(*options["paths"]), LeftOut())
    fields = [one.name for one in dataclasses.fields(Correction)]
    with target.open("w", encoding="utf-8") as file:
        # One line each: the parent gives way to its other threads between two lines.
        file.writelines(json.dumps([getattr(one, name) for name in fields]) + "\n" for one in found.corrections)
    return dict(found.left_out)


def _correction(*values: Any) -> Correction:  # noqa: ANN401 - the fields of a correction
    made = Correction(*values)
    boxes: Iterable[Iterable[float]] = made.boxes
    return dataclasses.replace(made, boxes=tuple(Box(*box) for box in boxes))
