"""Runs that differ in stage 2 alone share stage 1: classifier, CAMs and the journal's lines about them."""

import json
import os
import shutil
from pathlib import Path

from colocam.config import Config
from colocam.errors import ColocamError
from colocam.run import Run, config_difference, open_run
from colocam.utils.checkpoint import load_checkpoint
from colocam.utils.files import atomic_path, explain_os_errors


def take_over(run: Run, other: Path) -> None:
    """Give ``run`` the finished stage 1 of the run folder ``other``; nothing happens where it has one already.

    Files are linked where the disk allows it, else copied. All writers replace files whole, so that neither run can
    change what the other reads.

    Raises:
        ColocamError: stage 1 of ``other`` is unfinished, or ``run`` would train another one.
    """
    if (run.folder / "classifier" / "last.json").is_file():
        return
    donor = open_run(other)
    saved = load_checkpoint(other / "classifier", "last")
    if saved is None or saved[1]["epoch"] < donor.config.classifier.epochs:
        raise ColocamError(f"{other} has no finished classifier: finish 'colocam train' there first")
    if (changed := config_difference(_stage1(donor.config), _stage1(run.config))) is not None:
        raise ColocamError(f"{other} has a classifier of another configuration ({changed}): train one of its own")
    if _data(other) != _data(run.folder):
        raise ColocamError(f"{other} learnt from other videos or boxes: train a classifier of its own")
    with explain_os_errors(run.folder):
        journal = (other / "metrics.jsonl").read_bytes()[: saved[1]["journal"]]
        with atomic_path(run.folder / "metrics.jsonl") as temporary:
            temporary.write_bytes(journal)
        target = run.folder / "classifier"
        target.mkdir(exist_ok=True)
        # last.json makes a checkpoint, so it comes last: an interruption before it leaves nothing that counts
        for file in sorted((other / "classifier").iterdir(), key=lambda path: path.name == "last.json"):
            if not file.name.startswith("."):
                _link(file, target / file.name)


def _stage1(config: Config) -> Config:
    """The configuration with nothing in it that stage 1 does not read."""
    plain = Config()
    return config.model_copy(update={"methods": (), "localizer": plain.localizer, "clip": plain.clip})


def _data(folder: Path) -> dict[str, object]:
    described: dict[str, object] = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    return {key: value for key, value in described.items() if key != "frames"}


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        with atomic_path(target) as temporary:
            shutil.copyfile(source, temporary)
