"""Studies that compare methods, terms and networks: CorLoc of each row beside the published numbers."""

from colocam.cams import classifier_cams
from colocam.evaluation.metrics.protocols import PROTOCOLS, PUBLISHED_PROTOCOL
from colocam.evaluation.result import method_title
from lab.study.cells import Cam, Cell, ClipRow, Result, Trained
from lab.study.costs import FrameTime
from lab.study.recipe import SHOWN, Findings, Results, Study, corloc_findings, published, rows_study
from lab.study.tables import Entry, Table
from lab.study.workplace import Lab

SEEDS_AS_PUBLISHED = "F-CAM's and TCAM's seeds (one pixel of each kind) and maps are as published."
SEEDS_AS_CONFIGURED = (
    "CoLo-CAM's seeds, color mean and focus are those of the configuration; the study losses has its term alone."
)

METHODS: dict[str, tuple[str, Cell, Cell]] = {
    **{name: (method_title(name), Cam(name), FrameTime(name)) for name in classifier_cams()},
    "fcam": ("F-CAM", Trained("fcam"), FrameTime("localizer")),
    "clip-es": ("CLIP-ES", ClipRow(), ClipRow()),
    "tcam": ("TCAM", Trained("tcam"), FrameTime("localizer")),
    "colocam": ("CoLo-CAM", Trained("colocam"), FrameTime("localizer")),
}
"""Key in published.yaml → title, cell, and the cell of its time."""


def read_compare(lab: Lab, results: Results) -> Findings:  # noqa: ARG001 - the same on all data
    """Averages and times; ours per class; the published ones per class."""
    numbers = published("compare")["rows"]
    keyed = {version: {row["key"]: row for row in numbers[version] if "key" in row} for version in numbers}
    averages = {f"published, {v}": [keyed[v][key]["average"] for key in METHODS] for v in keyed}
    rows = [(name, cell) for name, cell, _ in METHODS.values()]
    found = corloc_findings(results, rows, averages)
    tables = [_averages(results), _classes(results), *(_published_classes(version) for version in numbers)]
    return Findings(tables, found.drawings, found.notes)


def _averages(results: Results) -> Table:
    numbers = published("compare")["rows"]
    both = {version: {row["method"]: row for row in numbers[version]} for version in numbers}
    lines: list[tuple[Entry, ...]] = []
    for method in dict.fromkeys([*both["v1.0"], *both["v2.2"]]):
        theirs = [both[version].get(method, {}) for version in both]
        known = next(row for row in theirs if row)
        ours: list[Entry] = [None] * (len(PROTOCOLS) + 1)
        if "key" in known:
            _, cell, timer = METHODS[known["key"]]
            ours = [*(results.corloc(cell, protocol) for protocol in PROTOCOLS), results.value(timer, "ms")]
        source = "quoted" if "key" not in known else "run here" if ours[0] is not None else "not run"
        lines.append((method, source, *ours, *(row.get("average") for row in theirs), known.get("ms")))
    device = next((found["device"] for found in results.of(FrameTime("localizer"))), "not measured")
    title = (
        "CorLoc in percent, mean over classes; published figures choose the threshold as oracle-per-class does. "
        f"Time per frame: ours on {device}, published on a Tesla P100"
    )
    columns = ("method", "source", *PROTOCOLS, "ms/frame", "published, v1.0", "published, v2.2", "published ms/frame")
    return Table("table", title, columns, tuple(lines))


def _classes(results: Results) -> Table:
    found: Result = next((run["corloc"] for _, cell, _ in METHODS.values() for run in results.of(cell)), {})
    tags = tuple(found.get(PUBLISHED_PROTOCOL, {}).get("classes", ()))
    lines = [
        (f"{name}, {protocol}", *(results.corloc(cell, protocol, tag) for tag in tags))
        for protocol in SHOWN
        for name, cell, _ in METHODS.values()
        if results.of(cell)
    ]
    return Table("classes", "Ours per class, CorLoc in percent", ("method, protocol", *tags), tuple(lines))


def _published_classes(version: str) -> Table:
    source = published("compare")
    rows = source["rows"][version]
    lines = tuple((row["method"], *row["classes"], row["average"], row.get("mean", "")) for row in rows)
    title = (
        f"Published per class, YouTube-Objects {version}, CorLoc in percent (oracle-per-class); last: the mean of "
        "the row's classes where the printed average is another"
    )
    return Table(f"published-{version}", title, ("method", *source["classes"], "average", "mean"), lines)


COMPARE = Study(
    "compare",
    "All methods side by side",
    lambda _: list(dict.fromkeys(cell for _, *both in METHODS.values() for cell in both)),
    read_compare,
    (
        "All CAMs and decoders share one classifier per seed.",
        SEEDS_AS_PUBLISHED,
        SEEDS_AS_CONFIGURED,
        "GradCAM and XGradCAM are one map here, and so are GradCAM++ and Smooth-GradCAM++ (docs/guide/cams.md).",
        "Time: one frame on the device; on a GPU every method is one recorded pass of the plain network in bfloat16.",
        "Rows marked 'quoted' are numbers of the paper; these methods are not implemented here.",
    ),
)


def _without(*terms: str) -> Trained:
    return Trained("colocam", tuple(f"localizer.losses.{term}=0" for term in terms))


LOSSES = rows_study(
    "losses",
    "What does each loss term contribute?",
    {
        "layercam": ("LayerCAM", Cam("layercam")),
        "pl": ("PLs", _without("crf", "size", "coloc")),
        "pl+crf": ("PLs + CRF", _without("size", "coloc")),
        "pl+asc": ("PLs + ASC", _without("crf", "coloc")),
        "pl+asc+crf": ("PLs + ASC + CRF", _without("coloc")),
        "pl+asc+crf+coloc": ("PLs + ASC + CRF + CoLoc", Trained("colocam")),
    },
    ("v1.0",),
    ("All rows use CoLo-CAM's seeds and post-processing (color mean, focus); only the terms change.",),
    first="terms",
)

TEMPORAL = rows_study(
    "temporal",
    "What do several frames contribute?",
    {key: METHODS[key][:2] for key in ("layercam", "fcam", "tcam", "colocam")},
    ("v1.0", "v2.2"),
    (SEEDS_AS_PUBLISHED, SEEDS_AS_CONFIGURED, "The paper has two data sets: run this study once on each."),
)

SAMPLING = rows_study(
    "sampling",
    "Which frames of a clip form a sequence?",
    {one: (one, Trained("colocam", (f"localizer.sampler={one}",))) for one in ("adjacent", "gaussian", "interval")},
    ("v1.0",),
    first="sampler",
)

STRIDE_8 = ("backbone.output_stride=8", "classifier.fit=sgd")
"""As published: their new convolutions must be trained, and they have the feature maps of this stride."""
BACKBONES: dict[str, tuple[str, tuple[str, ...]]] = {
    "resnet50": ("ResNet50", ("localizer.decoder=[256, 128, 64, 32, 16]",)),
    "vgg16": ("VGG16", (*STRIDE_8, "localizer.decoder=[256, 128, 64]")),
    "inception_v3": ("InceptionV3", (*STRIDE_8, "localizer.decoder=[256, 128, 64, 32, 16]")),
    "vit_small_patch16_224.dino": ("ViT-S/16 (DINO)", ("localizer.decoder=[256, 128, 64, 32]",)),
}
"""Name in timm → title and matching decoder."""
SMOKE_BACKBONES: dict[str, tuple[str, tuple[str, ...]]] = {
    "resnet10t": ("ResNet10-T", ()),
    "resnet10t, output stride 16": ("ResNet10-T, coarser", ("backbone.output_stride=16",)),
}


def backbone_overrides(lab: Lab, name: str) -> tuple[str, ...]:
    """Overrides of a backbone: its decoder, and its weights file beside the one that the user gave."""
    if lab.smoke:
        return SMOKE_BACKBONES[name][1]
    base = lab.config().backbone
    if name == base.name:  # as configured, with the configured decoder
        return ()
    changes = [f"backbone.name={name}", *BACKBONES[name][1]]
    if base.weights is not None:
        changes.append(f"backbone.weights={base.weights.with_stem(name)}")
    if base.stride_in_1x1:
        changes.append("backbone.stride_in_1x1=false")
    return tuple(changes)


def _backbone_rows(lab: Lab) -> list[tuple[str, str, Cell, Cell]]:
    """Name, title, and the cells of LayerCAM and CoLo-CAM."""
    changes = {name: backbone_overrides(lab, name) for name in (SMOKE_BACKBONES if lab.smoke else BACKBONES)}
    titles = {name: title for name, (title, _) in (SMOKE_BACKBONES | BACKBONES).items()}
    return [(name, titles[name], Cam("layercam", own), Trained("colocam", own)) for name, own in changes.items()]


def read_backbones(lab: Lab, results: Results) -> Findings:
    """LayerCAM and CoLo-CAM on each backbone."""
    numbers = published("backbones")["v1.0"]
    rows: list[tuple[str, Cell]] = []
    theirs: list[float | None] = []
    for name, title, cam, trained in _backbone_rows(lab):
        rows += [(f"{title}, LayerCAM", cam), (f"{title}, CoLo-CAM", trained)]
        theirs += [numbers["layercam"].get(name), numbers["colocam"].get(name)]
    found = corloc_findings(results, rows, {"published, v1.0": theirs}, "backbone")
    missing = [note for name, *_ in _backbone_rows(lab) if (note := _missing(lab, name))]
    return Findings(found.tables, found.drawings, [*found.notes, *missing])


def _missing(lab: Lab, name: str) -> str:
    weights = lab.config().backbone.weights
    if lab.smoke or weights is None or name == lab.config().backbone.name:
        return ""
    file = weights.with_stem(name)
    return "" if file.is_file() else f"{BACKBONES[name][0]} was not run: there is no {file.name} beside {weights.name}."


NETWORKS = Study(
    "backbones",
    "How much does the backbone matter?",
    lambda lab: [cell for name, _, *both in _backbone_rows(lab) if not _missing(lab, name) for cell in both],
    read_backbones,
    ("With backbone.weights=FOLDER/resnet50.safetensors the other files are expected beside it, under timm's names.",),
)


def _clip_rows() -> list[tuple[str, Cell]]:
    """CLIP-ES in nine variants: source of the class, list of backgrounds, refinement."""
    rows = published("clip-es")["rows"]
    cells = [ClipRow(row["label"], background=row["background"], refine=row["refine"]) for row in rows]
    return [(cell.label.removeprefix("CLIP-ES, "), cell) for cell in cells]


def read_clip(lab: Lab, results: Results) -> Findings:  # noqa: ARG001 - the rows are the paper's
    """CorLoc of each row."""
    numbers = published("clip-es")["rows"]
    columns = {f"published, {version}": [row[version] for row in numbers] for version in ("v1.0", "v2.2")}
    return corloc_findings(results, _clip_rows(), columns, "class, options")


CLIP_ES = Study(
    "clip-es", "What makes CLIP-ES good?", lambda lab: [cell for _, cell in lab.few(_clip_rows())], read_clip
)
