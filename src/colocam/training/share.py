"""Share stage 1 between runs that differ in stage 2 alone: its classifier, its CAMs and its lines of the journal."""

import os
import shutil
from pathlib import Path

from colocam.data.run_data import data_difference, read_data
from colocam.errors import ColocamError
from colocam.run import Run, config_difference, open_run
from colocam.utils.files import atomic_path, explain_os_errors
from colocam.utils.tensors import load_checkpoint


def take_over(run: Run, other: Path) -> None:
    """Give ``run`` the finished stage 1 of the run folder ``other``, unless it already has one.

    Files are hard-linked where the file system allows it, else copied. Every writer replaces whole files, so neither
    run can change the other's.

    Raises:
        ColocamError: stage 1 of ``other`` is unfinished, or ``run`` would train a different one.
    """
    if (run.folder / "classifier" / "last.json").is_file():
        return
    donor = open_run(other)
    saved = load_checkpoint(other / "classifier", "last")
    if saved is None or saved[1]["epoch"] < donor.config.classifier.passes:
        raise ColocamError(f"{other} has no finished classifier: finish 'colocam train' there first")
    if (changed := config_difference(donor.config.stage1(), run.config.stage1())) is not None:
        raise ColocamError(
            f"{other} has a classifier of another configuration ({changed}): leave the argument 'classifier' out"
        )
    if (changed := data_difference(read_data(other), read_data(run.folder))) is not None:
        raise ColocamError(
            f"{other} was trained on other videos or boxes ({changed}): leave the argument 'classifier' out"
        )
    with explain_os_errors(run.folder):
        journal = (other / "metrics.jsonl").read_bytes()[: saved[1]["journal"]]
        with atomic_path(run.folder / "metrics.jsonl") as temporary:
            temporary.write_bytes(journal)
        target = run.folder / "classifier"
        target.mkdir(exist_ok=True)
        # a checkpoint exists once last.json does, so it is linked last: after an interruption nothing looks complete
        for file in sorted((other / "classifier").iterdir(), key=lambda path: path.name == "last.json"):
            if not file.name.startswith("."):
                link(file, target / file.name)


def link(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it where the file system has no hard links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        with atomic_path(target) as temporary:
            shutil.copyfile(source, temporary)
