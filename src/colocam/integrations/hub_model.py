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

from colocam.config.card import Card, parse_card
from colocam.data.run_data import read_data
from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.evaluation.metrics.protocols import PROTOCOLS
from colocam.evaluation.result import Evaluation, read_evaluation
from colocam.types import Split
from colocam.utils.extras import not_installed
from colocam.utils.files import atomic_path, explain_os_errors, plain, write_json

try:
    from httpx import HTTPError
    from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
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
    head = "library_name: colocam\npipeline_tag: object-detection\ntags:\n- colocam\n- video\n- weakly-supervised"
    usage = f'''```python
from colocam import Localizer

localizer = Localizer.from_pretrained("{name}")
for found in localizer("film.mp4"):
    print(found.pts, found.tag, found.box)
```'''
    finds = f"Finds {_listed(card.tags)} in videos: a box, a heat-map and a track for each frame."
    chosen = f"the threshold of the boxes is {card.threshold:.2f}, chosen by `{plain(card.threshold_from)}`"
    parts = [
        f"---\n{head}\n---",
        f"# {name}",
        f"{finds} It was learnt from one tag per video, without boxes (CoLo-CAM).",
        "## Use\n\nInstall colocam with the extras `train` and `hub`; in a clone: `pip install -e '.[train,hub]'`.",
        usage,
        "## What was measured",
        *_measured(card, evaluation),
        "## Data",
        *([] if run is None else [_data(run)]),
        f"Network `{plain(card.backbone.name)}`, frames of {card.size}×{card.size} pixels; {chosen}.",
        "## Limits",
        _limits(card, evaluation),
    ]
    return "\n\n".join(parts) + "\n"


def _run_of(folder: Path) -> Path | None:
    """The run that a model folder belongs to: the folder itself, or its parent for a further method."""
    return next((one for one in (folder, folder.absolute().parent) if (one / "data.json").is_file()), None)


def _measured(card: Card, evaluation: Evaluation | None) -> list[str]:
    found = {} if evaluation is None else evaluation.methods.get(card.method, {})
    if evaluation is None or not found:
        return ["Nothing: the run was not evaluated with true boxes."]
    data, accuracy = evaluation.data, evaluation.classification
    meant = "CorLoc is the percentage of frames whose box has an IoU of at least 0.5 with a true box"
    rows = ["| protocol | CorLoc | 95 % interval | who chooses the threshold |", "|---|---|---|---|"]
    for protocol, meaning in PROTOCOLS.items():
        score = found.get(protocol)
        interval = "{:.1f}–{:.1f}".format(*score.interval) if score is not None and score.interval else ""
        number = _number(None if score is None else score.average)
        rows.append(f"| `{protocol}` | {number} | {interval} | {meaning} |")
    parts = [
        f"{meant}, as a mean over classes, on {data.frames} frames of {data.videos} videos (`{plain(data.split)}`).",
        "\n".join(rows),
    ]
    if own := found.get("tags-only"):
        classes = [f"| {_listed([tag])} | {_number(share)} |" for tag, share in own.classes.items()]
        parts.append("\n".join(["| class | CorLoc, `tags-only` |", "|---|---|", *classes]))
    if accuracy is not None:
        parts.append(f"The class is right in {accuracy.accuracy:.1f} % of the frames.")
    return parts


def _data(run: Path) -> str:
    data = read_data(run)
    videos = Counter(split for split, _ in {(clip.split, clip.video) for clip in data.catalogue.clips})
    uses: dict[Split, str] = {"train": "training", "val": "validation", "test": "test"}
    counted = ", ".join(f"{videos[split]} for {use}" for split, use in uses.items() if videos[split])
    boxes = "True boxes of validation videos were used." if data.boxes else "No box was used in training."
    return f"Videos: {counted}. {boxes}"


def _limits(card: Card, evaluation: Evaluation | None) -> str:
    limits = [
        "It knows these classes alone; a video of something else gets a box, too.",
        "It gives one object per frame, unless it is asked for several (`instances=True`).",
        "A box follows what the classifier looks at: it may miss parts of the object, or include what comes with it.",
        "The numbers hold for videos like those of the test.",
        "The `oracle` protocols see the test boxes: they are upper bounds, not what a user gets.",
    ]
    if card.presence is None:
        limits.append("The probability that the object is present is not calibrated.")
    found = {} if evaluation is None else evaluation.methods.get(card.method, {})
    unmeasured = [tag for score in list(found.values())[:1] for tag, share in score.classes.items() if share is None]
    if unmeasured:
        limits.append(f"Not measured, for want of frames: {_listed(unmeasured)}.")
    return "\n".join(f"- {limit}" for limit in limits)


def _listed(tags: Iterable[str]) -> str:
    """Classes in text that Markdown shows as it is, also in a table."""
    return ", ".join(re.sub(r"[\\`*_\[\]<>|#]", r"\\\g<0>", plain(tag)) for tag in tags)


def _number(share: float | None) -> str:
    return "not measured" if share is None else f"{share:.1f}"
