"""Inputs of ``export``, ``export-model``, ``review`` and ``report``."""

from tests.fuzz.case import Bench, Case
from tests.fuzz.mutate_tables import mutated_csv, mutated_parquet
from tests.fuzz.mutate_trees import mutated_json
from tests.fuzz.options import option_value, output, random_options
from tests.fuzz.targets_train import change_run

FORMATS = ("coco", "cvat", "yolo", "voc", "mot", "label-studio", "csv", "parquet", "masks")


def export_table(bench: Bench) -> Case:
    """A changed localisation table."""
    table = _table(bench)
    bench.change(table, mutated_parquet if table.endswith("parquet") else mutated_csv)
    return _export(bench, table)


def export_description(bench: Bench) -> Case:
    """A changed description of the video."""
    table = _table(bench)
    bench.change(f"{table.rsplit('.', 1)[0]}.video.json", mutated_json)
    return _export(bench, table)


def export_options(bench: Bench) -> Case:
    """Options, formats and output names of every kind."""
    table = _table(bench)
    case = _export(bench, table)
    kind = bench.random.choice(FORMATS) if bench.maybe(0.8) else option_value("", bench.random)
    out = output(bench.random)
    case.argv = ["export", table, "--to", kind, "-o", out, *random_options("export", bench.random)]
    case.outputs = [out]
    return case


def export_model(bench: Bench) -> Case:
    """The model of a changed run; torch's exporter takes seconds, so that only few are sound."""
    run = bench.copy("run")
    bench.change(f"{run}/model.json", mutated_json)
    out = output(bench.random, "out.onnx")
    return Case(["export-model", run, "-o", out], [out])


def review_table(bench: Bench) -> Case:
    """A changed localisation table."""
    table = _table(bench)
    bench.change(table, mutated_parquet if table.endswith("parquet") else mutated_csv)
    words = [] if bench.maybe(0.7) else random_options("review", bench.random)
    out = "out.csv" if bench.maybe(0.9) else table  # which must stay as it is
    return Case(["review", table, "-o", out, *words], ["out.csv"])


def review_run(bench: Bench) -> Case:
    """A changed run."""
    for name in ("run", "videos"):
        bench.copy(name)
    change_run(bench, "run")
    return Case(["review", "run", "--device", "cpu"], ["frames"], ["run"])


def report(bench: Bench) -> Case:
    """A changed run."""
    run = bench.copy(bench.random.choice(("run", "run", "stored-run")), "run")
    change_run(bench, run)
    return Case(["report", run], [], [run])


def _table(bench: Bench) -> str:
    kind = bench.random.choice(("plain", "masks", "parquet"))
    bench.copy(f"results/{kind}", "tables")
    return f"tables/h264.{'parquet' if kind == 'parquet' else 'csv'}"


def _export(bench: Bench, table: str) -> Case:
    kind = bench.random.choice(FORMATS)
    words = ["export", table, "--to", kind, "-o", "out"]
    if bench.maybe(0.3):
        bench.copy("films/h264.mp4")
        words += ["--video", "films/h264.mp4"]
    if bench.maybe(0.2):
        words.append("--images")
    return Case(words, ["out"])
