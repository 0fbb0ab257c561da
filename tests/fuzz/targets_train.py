"""Inputs of the commands that train and measure: ``train``, ``evaluate``, ``score``, ``index``."""

from functools import partial

from tests.fuzz.case import Bench, Case
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_films import mutated_film, mutated_image
from tests.fuzz.mutate_models import mutated_onnx, mutated_safetensors
from tests.fuzz.mutate_tables import mutated_csv
from tests.fuzz.mutate_trees import mutated_json, mutated_yaml
from tests.fuzz.options import option_value, output, random_options

QUICK = ["--device", "cpu"]


def train_films(bench: Bench) -> Case:
    """Some videos are changed."""
    _videos(bench)
    names = sorted(str(path.relative_to(bench.folder)) for path in (bench.folder / "videos").rglob("*.mp4"))
    for name in bench.random.sample(names, bench.random.choice((1, 2, 9))):
        bench.change(name, partial(mutated_film, others=[b"x"]))
    return _train(bench, "videos" if bench.maybe(0.3) else "manifest.csv")


def train_manifest(bench: Bench) -> Case:
    """A changed manifest."""
    _videos(bench)
    return _train(bench, bench.change("manifest.csv", mutated_csv))


def train_config(bench: Bench) -> Case:
    """A changed configuration."""
    _videos(bench)
    bench.copy("run/config.yaml", "config.yaml")
    bench.change("config.yaml", mutated_yaml)
    case = _train(bench, "manifest.csv")
    case.endless = True
    return case


def train_options(bench: Bench) -> Case:
    """Options of every kind."""
    _videos(bench)
    case = _train(bench, option_value("", bench.random) if bench.maybe(0.1) else "manifest.csv")
    out = output(bench.random)
    case.argv = [*case.argv[:2], "--out", out, *case.argv[4:], *random_options("train", bench.random, 4)]
    # The folder of the frame cache is an output as well.
    named = [case.argv[place + 1] for place, word in enumerate(case.argv) if word == "--frames"]
    case.outputs, case.endless = [out, *named], True
    return case


def train_on(bench: Bench) -> Case:
    """Continue a run whose files were changed."""
    _videos(bench)
    bench.copy("run", "out")
    if bench.maybe(0.5):
        bench.copy("frames")
    change_run(bench, "out")
    if bench.maybe(0.5):  # as if it had been interrupted
        (bench.folder / "out" / "model.json").unlink(missing_ok=True)
    case = _train(bench, "manifest.csv")
    case.argv += ["--frames", "frames"]
    case.outputs, case.owned, case.endless = ["out", "frames"], ["out", "frames"], True
    return case


def evaluate_run(bench: Bench) -> Case:
    """A run with changed files, or a changed frame cache."""
    _run(bench)
    if bench.maybe(0.2):
        bench.copy("frames")
        bench.change(bench.random.choice(bench.names("frames")), mutated_bytes)
    else:
        change_run(bench, "run")
    words = [] if bench.maybe(0.8) else random_options("evaluate", bench.random)
    return _evaluate(["--boxes", "truth.csv", *words])


def evaluate_truth(bench: Bench) -> Case:
    """Changed true boxes."""
    _run(bench)
    bench.change("truth.csv", mutated_csv)
    return _evaluate(["--boxes", "truth.csv"])


def evaluate_dense(bench: Bench) -> Case:
    """A changed index of whole shots."""
    _run(bench)
    bench.copy("index")
    bench.change(f"index/{bench.random.choice(('manifest.csv', 'truth.csv'))}", mutated_csv)
    return _evaluate(["--dense", "index", *(["--split", "test"] if bench.maybe(0.8) else [])])


def evaluate_refined(bench: Bench) -> Case:
    """A changed segmenter."""
    _run(bench)
    bench.copy("segmenter")
    bench.change(f"segmenter/small.{bench.random.choice(('encoder', 'decoder'))}.onnx", mutated_onnx)
    return _evaluate(["--boxes", "truth.csv", "--refine", "segmenter"])


def score_boxes(bench: Bench) -> Case:
    """Changed predictions, true boxes or manifest."""
    for name in ("predictions.csv", "truth.csv", "manifest.csv"):
        bench.copy(name)
    bench.change(bench.random.choice(("predictions.csv", "truth.csv", "manifest.csv")), mutated_csv)
    more = ["--manifest", "manifest.csv"] if "manifest.csv" in bench.changed else []
    return _score(bench, "predictions.csv", more)


def score_maps(bench: Bench) -> Case:
    """Changed maps or masks, as images and arrays."""
    bench.copy("truth.csv")
    for name in ("maps", "masks"):
        bench.copy(name)
    name = bench.random.choice([*bench.names("maps"), *bench.names("masks")])
    bench.change(name, mutated_bytes if name.endswith("npy") else mutated_image)
    return _score(bench, "maps", ["--masks", "masks"] if bench.maybe(0.7) else [])


def index_frames(bench: Bench) -> Case:
    """A changed table of single frames."""
    bench.copy("shots")
    bench.copy("shots.csv")
    bench.change("shots.csv", mutated_csv)
    return Case(["index", "frames", "shots.csv", "-o", "out"], ["out"])


def index_archive(bench: Bench) -> Case:
    """A changed archive of YouTube-Objects."""
    version = bench.random.choice(("1.0", "2.2"))
    root = bench.copy(f"youtube-{version}", "root")
    names = sorted(str(path.relative_to(bench.folder)) for path in (bench.folder / root).rglob("*") if path.is_file())
    for name in bench.random.sample([one for one in names if not one.endswith(".jpg")], 2):
        bench.change(name, mutated_bytes)
    words = ["index", "youtube-objects", root, "--version", version, "-o", output(bench.random)]
    return Case([*words, *random_options("index youtube-objects", bench.random, 1)], [words[-1]])


def change_run(bench: Bench, run: str) -> None:
    """Change one or two files of a run folder."""
    files = sorted(str(path.relative_to(bench.folder)) for path in (bench.folder / run).rglob("*") if path.is_file())
    kinds = {".json": mutated_json, ".yaml": mutated_yaml, ".safetensors": mutated_safetensors}
    weights = [1 if name.endswith(".safetensors") else 3 for name in files]
    for name in bench.random.choices(files, weights, k=bench.random.choice((1, 2))):
        bench.change(name, kinds.get(f".{name.rsplit('.', 1)[-1]}", mutated_bytes))


def _videos(bench: Bench) -> None:
    for name in ("videos", "manifest.csv", "truth.csv"):
        bench.copy(name)


def _run(bench: Bench) -> None:
    for name in ("run", "videos", "truth.csv", "manifest.csv"):
        bench.copy(name)


def _train(bench: Bench, videos: str) -> Case:
    config = ["--config", "config.yaml"]
    if not (bench.folder / "config.yaml").exists():
        bench.copy("config.yaml")
    return Case(["train", videos, "--out", "out", *config, *QUICK], ["out"])


def _evaluate(words: list[str]) -> Case:
    return Case(["evaluate", "run", *QUICK, *words], ["frames"], ["run", "frames"])


def _score(bench: Bench, predictions: str, more: list[str]) -> Case:
    out = "out.json" if bench.maybe(0.9) else "truth.csv"  # which must stay as it is
    words = ["score", predictions, "--boxes", "truth.csv", "--json", out, *more]
    words += [] if bench.maybe(0.7) else random_options("score", bench.random, 2)
    return Case(words, ["out.json"])
