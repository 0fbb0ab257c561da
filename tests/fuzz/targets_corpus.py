"""Inputs of the commands for many films and for corrections: ``label``, ``export``, ``import``, ``learn``."""

from pathlib import Path
from zipfile import ZipFile

from tests.fuzz.case import Bench, Case
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_tables import mutated_csv, mutated_parquet
from tests.fuzz.mutate_text import mutated_words, mutated_xml
from tests.fuzz.mutate_trees import mutated_json, mutated_yaml
from tests.fuzz.options import option_value, output, random_options
from tests.fuzz.targets_train import change_run

IMPORTED = ("cvat", "label-studio", "coco", "yolo", "voc", "mot", "csv")
EXPORTED = ("coco", "cvat", "yolo", "voc", "mot", "label-studio", "csv", "parquet")
MUTATIONS = {
    ".xml": mutated_xml,
    ".json": mutated_json,
    ".yaml": mutated_yaml,
    ".csv": mutated_csv,
    ".parquet": mutated_parquet,
    ".txt": mutated_words,
    ".ini": mutated_words,
}


def import_labels(bench: Bench) -> Case:
    """Changed labels of an annotation tool."""
    kind = bench.random.choice(IMPORTED)
    bench.copy("results/plain", "tables")
    bench.copy(f"exports/{kind}", "in")
    _change_below(bench, "in")
    source = "in"
    if kind == "cvat" and bench.maybe(0.4):
        source = _zipped(bench)
    words = ["import", source, "--from", kind, "-o", output(bench.random, "out.csv")]
    if bench.maybe(0.8):
        words += ["--tables", "tables"]
    if bench.maybe(0.3):
        words += ["--checked", bench.random.choice(("all", "tables/h264.csv", option_value("", bench.random)))]
    return Case(words, [words[5]])


def learn(bench: Bench) -> Case:
    """Changed corrections, or a changed run."""
    for name in ("run", "videos", "corrections.csv"):
        bench.copy(name)
    if bench.maybe(0.8):
        bench.change("corrections.csv", mutated_csv)
    else:
        change_run(bench, "run")
    words = ["learn", "run", "corrections.csv", "-o", "out", "--device", "cpu", "--steps", "0"]
    # Frames that are not cached yet are decoded where the run says.
    return Case(words, ["out", "run/frames", "frames"], [], endless=True)


def label_catalogue(bench: Bench) -> Case:
    """A changed catalogue, or options of every kind."""
    for name in ("model.onnx", "videos", "catalogue.csv"):
        bench.copy(name)
    if bench.maybe(0.7):
        bench.change("catalogue.csv", mutated_csv)
    options = random_options("label", bench.random, 3) if bench.maybe(0.4) else []
    known = [word for word in options if word in {"--workers", "--ray"}]
    return _label([] if known else options, "out")


def label_again(bench: Bench) -> Case:
    """Labels of an earlier command with changed parts, lists and notes."""
    for name in ("model.onnx", "videos", "catalogue.csv"):
        bench.copy(name)
    bench.copy("labels", "out")
    _change_below(bench, "out")
    case = _label(["--retry-failed"] if bench.maybe(0.3) else [], "out")
    case.owned = ["out"]
    return case


def export_labels(bench: Bench) -> Case:
    """Changed labels of ``colocam label``."""
    bench.copy("labels")
    _change_below(bench, "labels")
    words = ["export", "labels", "--to", bench.random.choice(EXPORTED), "-o", "out"]
    if bench.maybe(0.3):
        bench.copy("videos")
        words += ["--video", ".", *(["--images"] if words[3] in {"coco", "yolo", "voc"} else [])]
    return Case(words, ["out"])


def _label(options: list[str], out: str) -> Case:
    words = ["label", "model.onnx", "catalogue.csv", "-o", out, "--workers", "1", "--retries", "0", *options]
    return Case(words, [out])


def _change_below(bench: Bench, folder: str) -> None:
    """Change one or two files of a folder."""
    files = sorted(path for path in (bench.folder / folder).rglob("*") if path.is_file())
    for path in bench.random.choices(files, k=bench.random.choice((1, 1, 2))):
        name = str(path.relative_to(bench.folder))
        bench.change(name, MUTATIONS.get(path.suffix, mutated_bytes))


def _zipped(bench: Bench) -> str:
    """The folder ``in`` as an archive, which is changed or not."""
    with ZipFile(bench.folder / "in.zip", "w") as archive:
        for path in sorted((bench.folder / "in").rglob("*")):
            archive.write(path, str(Path("in") / path.name))
    return bench.change("in.zip", mutated_bytes) if bench.maybe(0.5) else "in.zip"
