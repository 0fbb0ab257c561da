"""The classifier's backbone."""

from collections.abc import Sequence
from pathlib import Path

from colocam.lab.study.cells import Cam, Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_findings
from colocam.lab.study.workplace import Lab

TRAINED = ("backbone.output_stride=8", "classifier.fit=sgd")
"""As published: their new convolutions must be trained, and they have the feature maps of this stride."""
BACKBONES: dict[str, tuple[str, tuple[str, ...]]] = {
    "resnet50": ("ResNet50", ("localizer.decoder=[256, 128, 64, 32, 16]",)),
    "vgg16": ("VGG16", (*TRAINED, "localizer.decoder=[256, 128, 64]")),
    "inception_v3": ("InceptionV3", (*TRAINED, "localizer.decoder=[256, 128, 64, 32, 16]")),
    "vit_small_patch16_224.dino": ("ViT-S/16 (DINO)", ("localizer.decoder=[256, 128, 64, 32]",)),
}
"""Name in timm → title and matching decoder."""
SMOKE: dict[str, tuple[str, tuple[str, ...]]] = {
    "resnet10t": ("ResNet10-T", ()),
    "resnet10t, output stride 16": ("ResNet10-T, coarser", ("backbone.output_stride=16",)),
}


def overrides(lab: Lab, name: str) -> tuple[str, ...]:
    """Overrides of a backbone: its decoder, and its weights file beside the one that the user gave."""
    if lab.smoke:
        return SMOKE[name][1]
    base = lab.config().backbone
    if name == base.name:  # as configured, with the configured decoder
        return ()
    changes = [f"backbone.name={name}", *BACKBONES[name][1]]
    if base.weights is not None:
        changes.append(f"backbone.weights={weights_beside(base.weights, name)}")
    if base.stride_in_1x1:
        changes.append("backbone.stride_in_1x1=false")
    return tuple(changes)


def weights_beside(weights: Path, name: str) -> Path:
    """``vgg16.safetensors`` beside ``resnet50.safetensors``."""
    return weights.with_name(f"{name}{weights.suffix}")


def _rows(lab: Lab) -> list[tuple[str, str, Cell, Cell]]:
    rows: list[tuple[str, str, Cell, Cell]] = []
    for name, (title, _) in (SMOKE if lab.smoke else BACKBONES).items():
        changes = overrides(lab, name)
        rows.append((name, title, Cam("layercam", changes), Trained("colocam", changes)))
    return rows


def cells(lab: Lab) -> Sequence[Cell]:
    """Stage 1 and CoLo-CAM for each backbone with weights."""
    chosen: list[Cell] = []
    for name, _, cam, trained in _rows(lab):
        if not _missing(lab, name):
            chosen += [cam, trained]
    return chosen


def read(lab: Lab, results: Results) -> Findings:
    """LayerCAM and CoLo-CAM on each backbone."""
    numbers = published("backbones")["v1.0"]
    rows: list[tuple[str, Cell]] = []
    theirs: list[float | None] = []
    for name, title, cam, trained in _rows(lab):
        rows += [(f"{title}, LayerCAM", cam), (f"{title}, CoLo-CAM", trained)]
        theirs += [numbers["layercam"].get(name), numbers["colocam"].get(name)]
    found = corloc_findings(results, rows, {"published, v1.0": theirs}, "backbone")
    missing = [note for name, *_ in _rows(lab) if (note := _missing(lab, name))]
    return Findings(found.tables, found.drawings, [*found.notes, *missing])


def _missing(lab: Lab, name: str) -> str:
    weights = lab.config().backbone.weights
    if lab.smoke or weights is None or name == lab.config().backbone.name:
        return ""
    file = weights_beside(weights, name)
    return "" if file.is_file() else f"{BACKBONES[name][0]} was not run: there is no {file.name} beside {weights.name}."


STUDY = Study(
    "backbones",
    "How much does the backbone matter?",
    cells,
    read,
    ("With backbone.weights=FOLDER/resnet50.safetensors the other files are expected beside it, under timm's names.",),
)
