"""Hugging Face hub: a trained model as a repository of safetensors and JSON, with a model card made from its run.

A repository holds ``model.safetensors`` and ``model.json`` as a run folder does, ``config.json``, by which the hub
counts downloads, and ``README.md``. Only these files are downloaded, and they pass the checks of any model.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from shutil import copyfile
from typing import Any

from colocam.config.card import parse_card
from colocam.data.run_data import RunData, read_data
from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.evaluation.metrics.protocols import PROTOCOLS
from colocam.evaluation.result import read_evaluation
from colocam.types import Split
from colocam.utils.extras import not_installed
from colocam.utils.files import atomic_path, explain_os_errors, plain, write_json

try:
    from httpx import HTTPError
    from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ModuleNotFoundError as absent:
    raise not_installed(absent, __name__, "hub") from absent

WEIGHTS, CARD, CONFIG, README = "model.safetensors", "model.json", "config.json", "README.md"
FILES = (WEIGHTS, CARD, CONFIG, README)
"""All that a repository holds, and all that is downloaded."""
KEPT = {*FILES, ".git", ".gitattributes", ".cache"}
"""What a folder may hold that a model is saved in."""


class HubModel(ModelHubMixin):
    """The files of a trained model in a folder.

    Attributes:
        folder: a run folder, the folder of one of its methods, or a downloaded repository.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _save_pretrained(self, save_directory: Path) -> None:
        copies = [WEIGHTS, CARD]
        if _run_of(self.folder) is None and (self.folder / README).is_file():
            copies.append(README)  # of a downloaded repository, whose run is not here
        for name in copies:
            with atomic_path(save_directory / name) as temporary:
                copyfile(self.folder / name, temporary)
        write_json(save_directory / CONFIG, {"library_name": "colocam", "model_type": "colocam"})

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **how: Any) -> "HubModel":  # noqa: ANN401 - of snapshot_download
        if Path(model_id).is_dir():
            return cls(Path(model_id))
        names = ("revision", "cache_dir", "force_download", "local_files_only", "token")
        asked = {name: how[name] for name in names}  # the rest comes from a stranger's config.json
        return cls(Path(snapshot_download(model_id, allow_patterns=list(FILES), **asked)))

    def generate_model_card(self, *, name: str = "NAME") -> ModelCard:
        """The model card; ``name`` is that of the repository."""
        return ModelCard(model_card(self.folder, name))


def fetch(name: str | Path, **how: Any) -> Path:  # noqa: ANN401 - of ModelHubMixin
    """The folder of a model: ``name`` itself if it is a folder, else a download from the hub.

    Args:
        name: a folder, or a repository, ``owner/name``.
        how: ``revision``, ``token``, ``cache_dir``, ``force_download``, ``local_files_only``.
    """
    try:
        return HubModel.from_pretrained(name, **how).folder
    except (HTTPError, OSError, ValueError, AttributeError) as error:  # the last two also for a damaged config.json
        raise ColocamError(
            f"cannot load {name}, as a folder or from the Hugging Face hub: {first_line(error)}"
        ) from error


def save(source: Path, folder: Path) -> Path:
    """Write the model of ``source`` into a folder, as a repository of the hub holds it.

    An earlier saved model is replaced; a folder with other files is refused.
    """
    if folder.is_dir() and (others := sorted({path.name for path in folder.iterdir()} - KEPT)):
        raise ArgumentError("folder", f"must be empty or hold a saved model, got {folder} with {others[0]}")
    if folder.resolve() != source.resolve():
        with explain_os_errors(folder):
            (folder / README).unlink(missing_ok=True)
            HubModel(source).save_pretrained(folder, model_card_kwargs={"name": folder.name})
    return folder


def push(source: Path, name: str, **how: Any) -> str:  # noqa: ANN401 - of ModelHubMixin
    """Upload the model of ``source`` to the repository ``owner/name`` in one commit; gives the address of the commit.

    Args:
        source: folder of the model.
        name: ``owner/name``; the repository is created if there is none.
        how: ``private``, ``token``, ``branch``, ``commit_message``, ``create_pr``; by default the stored token is used.
    """
    try:
        return str(HubModel(source).push_to_hub(name, model_card_kwargs={"name": name}, **how))
    except (HTTPError, OSError, ValueError) as error:
        raise ColocamError(
            f"cannot push to {name}: {first_line(error)}: check the name, owner/name, and log in with 'hf auth login'"
        ) from error


def model_card(folder: Path, name: str) -> str:
    """The README of a repository: use, what was measured under all four protocols, data and limits.

    No path of this computer and no name of a video is in it.
    """
    card = parse_card((folder / CARD).read_text(encoding="utf-8"), str(folder / CARD))
    run = _run_of(folder)
    evaluation = None if run is None else read_evaluation(run / "evaluation.json")
    scores = {} if evaluation is None else evaluation.methods.get(card.method, {})
    data = None if run is None else read_data(run)
    environment = Environment(  # noqa: S701 - Markdown, not HTML; the filter listed escapes
        loader=PackageLoader("colocam", "integrations"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"listed": _listed, "number": _number, "plain": plain}
    return environment.get_template("model_card.md").render(
        name=name,
        card=card,
        protocols=PROTOCOLS,
        scores=scores,
        evaluation=evaluation,
        data=data,
        videos="" if data is None else _videos(data),
        unmeasured=[tag for one in [*scores.values()][:1] for tag, share in one.classes.items() if share is None],
    )


def _run_of(folder: Path) -> Path | None:
    """The run that a model folder belongs to: the folder itself, or its parent for a further method."""
    return next((one for one in (folder, folder.absolute().parent) if (one / "data.json").is_file()), None)


def _videos(data: RunData) -> str:
    """The number of videos of each split."""
    counts = Counter(split for split, _ in {(clip.split, clip.video) for clip in data.catalogue.clips})
    uses: dict[Split, str] = {"train": "training", "val": "validation", "test": "test"}
    return ", ".join(f"{counts[split]} for {use}" for split, use in uses.items() if counts[split])


def _listed(tags: Iterable[str]) -> str:
    """Classes in text that Markdown shows as it is, also in a table."""
    return ", ".join(re.sub(r"[\\`*_\[\]<>|#]", r"\\\g<0>", plain(tag)) for tag in tags)


def _number(share: float | None) -> str:
    return "not measured" if share is None else f"{share:.1f}"
