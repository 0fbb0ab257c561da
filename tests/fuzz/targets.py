"""All kinds of inputs: a command, the files that it reads, and which of them are changed."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from zipfile import ZipFile

from tests.fuzz.case import Case
from tests.fuzz.hostile_values import text
from tests.fuzz.mutate_bytes import Mutation, mutated_bytes
from tests.fuzz.mutate_models import mutated_onnx, mutated_safetensors
from tests.fuzz.mutate_tables import mutated_parquet
from tests.fuzz.mutate_text import mutated_text
from tests.fuzz.mutate_videos import mutated_image, mutated_video
from tests.fuzz.options import option_value, output, random_options

MUTATIONS: dict[str, Mutation] = {
    **dict.fromkeys((".csv", ".json", ".yaml", ".xml", ".txt", ".ini"), mutated_text),
    **dict.fromkeys((".png", ".jpg", ".bmp", ".tiff", ".webp", ".ppm"), mutated_image),
    ".parquet": mutated_parquet,
    ".safetensors": mutated_safetensors,
    ".onnx": mutated_onnx,
}
FORMATS = "coco|cvat|yolo|voc|mot|label-studio|csv|parquet|masks"
IMPORTED = "cvat|label-studio|coco|yolo|voc|mot|csv"


def odd_videos(folder: Path, random: Random) -> None:
    """What is no video among the videos, and names that are hard to handle."""
    name = text(random).replace("\0", "").replace("/", "").replace("\ud800", "")[:251]
    sound = min((folder / "in").iterdir()).read_bytes()
    oddities: dict[str, Callable[[Path], object]] = {
        "loop.mp4": lambda path: path.symlink_to("loop.mp4"),
        "gone.mp4": lambda path: path.symlink_to("nowhere.mp4"),
        "pipe.mp4": os.mkfifo,
        "empty.mp4": Path.touch,
        "folder.mp4": Path.mkdir,
        "text.mp4": lambda path: path.write_text("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ntext.mp4\n"),
        "up": lambda path: path.symlink_to(".."),
        f"{name if name.strip('.') else 'odd'}.mp4": lambda path: path.write_bytes(sound),
    }
    for one in random.sample(sorted(oddities), 2):
        oddities[one](folder / "in" / one)


def as_archive(folder: Path, random: Random) -> None:
    """Labels may also come as a ZIP, changed or not."""
    with ZipFile(folder / "in.zip", "w") as archive:
        for path in sorted((folder / "in").rglob("*")):
            archive.write(path, str(Path("in") / path.name))
    if random.random() < 0.5:
        (folder / "in.zip").write_bytes(mutated_bytes((folder / "in.zip").read_bytes(), random))


def unfinished(folder: Path, random: Random) -> None:
    """As if a training had been interrupted."""
    if random.random() < 0.5:
        (folder / "out" / "model.json").unlink(missing_ok=True)


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes:
        share: how often it is chosen.
        words: of the command: ``a|b`` is one of them, ``[a b]`` may be left out, ``{model}`` is a run or an ONNX
            file, ``{out}`` a name to write to, ``{options}`` some options of the command, ``{hostile}`` any value.
        files: of the corpus; ``a|b`` is one of them, ``[a]`` may be left out, ``a>b`` is copied as b.
        change: patterns of copied files; one or two of those that fit are changed.
        owned: folders and files beside the outputs that may be written or changed.
        endless: whether the input may ask for more work than the time limit allows, as settings of a training do.
        stdin: file that is piped into the command.
        also: what is done to the files after that.
    """

    share: int
    words: str
    files: str
    change: str
    owned: str = ""
    endless: bool = False
    stdin: str | None = None
    also: Callable[[Path, Random], None] | None = None


LOCALIZE = "localize {model} video.mp4 -o out --no-video --device cpu"
TRAIN = "train manifest.csv --out out --config config.yaml --device cpu"
EVALUATE = "evaluate run --device cpu"
VIDEOS = "videos manifest.csv truth.csv config.yaml"
RUN = "run videos truth.csv manifest.csv"
LABEL = "label model.onnx catalogue.csv -o out --workers 1 --retries 0"
TABLE = "results/plain>tables|results/masks>tables"
TARGETS: dict[str, Target] = {
    "localize video": Target(14, "localize {model} in -o out --device cpu [--no-video]", "videos/*>in/video.*", "in/*"),
    "localize - < video": Target(
        2, "localize {model} - -o out --no-video --device cpu", "videos/*>video.mp4", "video.mp4", stdin="video.mp4"
    ),
    "localize folder": Target(
        3,
        "localize model.onnx in -o out --no-video --every 3",
        "model.onnx videos/*>in/a.* videos/*>in/b.*",
        "in/a.*",
        also=odd_videos,
    ),
    "localize images": Target(5, "localize {model} in -o out --device cpu [--no-video]", "images/*>in", "in/*"),
    "localize model": Target(
        7,
        "localize run video.mp4 -o out --no-video --device cpu",
        "run|stored-run>run videos/h264.mp4>video.mp4",
        "run/model.*",
    ),
    "localize ONNX": Target(
        9,
        "localize model.onnx video.mp4 -o out --no-video [--instances] [--masks]",
        "model.onnx videos/h264.mp4>video.mp4",
        "model.onnx",
    ),
    "localize --refine": Target(
        5, f"{LOCALIZE} --refine segmenter", "segmenter videos/h264.mp4>video.mp4", "segmenter/*"
    ),
    "localize options": Target(
        7, "localize {model} video.mp4|{hostile} -o {out} {options}", "videos/h264.mp4>video.mp4", ""
    ),
    "localize again": Target(
        3,
        "localize model.onnx h264.mp4 -o out [--overwrite]",
        "model.onnx results/plain>out videos/h264.mp4>h264.mp4",
        "out/*.json out/*.csv",
        owned="out",
    ),
    "train videos": Target(1, TRAIN, VIDEOS, "videos/*/*.mp4"),
    "train manifest": Target(3, TRAIN, VIDEOS, "manifest.csv"),
    "train --config": Target(4, TRAIN, f"{VIDEOS} run/config.yaml>config.yaml", "config.yaml", endless=True),
    "train options": Target(
        2, "train manifest.csv|{hostile} --out {out} --config config.yaml {options}", VIDEOS, "", endless=True
    ),
    "train again": Target(
        3, f"{TRAIN} --frames frames", f"{VIDEOS} run>out [frames]", "out/*", owned="out", endless=True, also=unfinished
    ),
    "evaluate run": Target(4, f"{EVALUATE} --boxes truth.csv [{{options}}]", RUN, "run/*", owned="run frames"),
    "evaluate frames": Target(1, f"{EVALUATE} --boxes truth.csv", f"{RUN} frames", "frames/*", owned="run frames"),
    "evaluate --boxes": Target(2, f"{EVALUATE} --boxes truth.csv", RUN, "truth.csv", owned="run frames"),
    "evaluate --dense": Target(
        2, f"{EVALUATE} --dense index [--split test]", f"{RUN} index", "index/*", owned="run frames"
    ),
    "evaluate --refine": Target(
        1, f"{EVALUATE} --boxes truth.csv --refine segmenter", f"{RUN} segmenter", "segmenter/*", owned="run frames"
    ),
    "score boxes": Target(
        5,
        "score predictions.csv --boxes truth.csv --json out.json|truth.csv [--manifest manifest.csv] [{options}]",
        "predictions.csv truth.csv manifest.csv",
        "*.csv",
    ),
    "score maps": Target(
        4,
        "score maps --boxes truth.csv --json out.json [--masks masks]",
        "truth.csv maps masks",
        "maps/*/*/* masks/*/*/*",
    ),
    "index frames": Target(3, "index frames shots.csv -o out", "shots shots.csv", "shots.csv"),
    "index archive": Target(
        3,
        "index youtube-objects root --version 1.0|2.2 -o {out}",
        "youtube-1.0>root|youtube-2.2>root",
        "root/**/*.mat root/**/*.txt",
    ),
    "export table": Target(8, f"export tables/h264.csv --to {FORMATS} -o out [--images]", TABLE, "tables/*.csv"),
    "export parquet": Target(
        4, f"export tables/h264.parquet --to {FORMATS} -o out", "results/parquet>tables", "tables/*.parquet"
    ),
    "export video.json": Target(5, f"export tables/h264.csv --to {FORMATS} -o out", TABLE, "tables/*.json"),
    "export options": Target(4, f"export tables/h264.csv --to {FORMATS}|{{hostile}} -o {{out}} {{options}}", TABLE, ""),
    "export-model": Target(1, "export-model run -o out.onnx", "run", "run/model.json"),
    "review table": Target(5, "review tables/h264.csv -o out.csv|tables/h264.csv [{options}]", TABLE, "tables/*.csv"),
    "review run": Target(2, "review run --device cpu", "run videos", "run/*", owned="run frames"),
    "report": Target(4, "report run", "run|stored-run>run", "run/*", owned="run"),
    "label catalogue": Target(4, f"{LABEL} [{{options}}]", "model.onnx videos catalogue.csv", "catalogue.csv"),
    "label again": Target(
        4, f"{LABEL} [--retry-failed]", "model.onnx videos catalogue.csv labels>out", "out/**/*.*", owned="out"
    ),
    "export labels": Target(4, f"export labels --to {FORMATS} -o out", "labels", "labels/**/*.*"),
    "import": Target(
        10,
        f"import in|in.zip --from {IMPORTED} -o out.csv [--tables tables] [--checked all|tables/h264.csv|{{hostile}}]",
        "results/plain>tables exports/*>in",
        "in/**/*.*",
        also=as_archive,
    ),
    "learn": Target(
        2,
        "learn run corrections.csv -o out --device cpu --steps 0",
        "run videos corrections.csv",
        "corrections.csv run/*",
        owned="run frames",
        endless=True,
    ),
}


def target_of(seed: int, number: int) -> str:
    """Name of the kind of an input."""
    return _drawn(Random(f"{seed}-{number}"))


def build(seed: int, number: int, corpus: Path, folder: Path) -> Case:
    """Write the files of an input into an empty folder and return its command."""
    random = Random(f"{seed}-{number}")
    target = TARGETS[_drawn(random)]
    files, model = target.files, random.choice(("model.onnx", "run"))
    if "{model}" in target.words:
        files += f" {model}"
    kinds = [_copy(corpus, folder, one, random) for one in files.split()]
    found = sorted(path for pattern in target.change.split() for path in folder.glob(pattern) if path.is_file())
    for path in random.sample(found, min(len(found), random.choice((1, 1, 2)))):
        mutation = MUTATIONS.get(path.suffix, mutated_video)
        path.write_bytes(mutation(path.read_bytes(), random))
    if target.also is not None:
        target.also(folder, random)
    words = _words(target.words.replace("{model}", model), random)
    if "--from" in words and random.random() < 0.9:
        words[words.index("--from") + 1] = kinds[-1]
    outputs = [after for word, after in pairwise(words) if word in {"-o", "--out", "--json", "--frames"}]
    return Case(words, outputs, target.owned.split(), target.stdin, target.endless)


def _drawn(random: Random) -> str:
    return random.choices(list(TARGETS), [target.share for target in TARGETS.values()])[0]


def _copy(corpus: Path, folder: Path, listed: str, random: Random) -> str:
    """Copy a file or folder of the corpus; returns its name there."""
    if listed.startswith("[") and random.random() < 0.5:
        return ""
    source, _, target = random.choice(listed.strip("[]").split("|")).partition(">")
    path = random.choice(sorted(corpus.glob(source)))
    copy = folder / (target or source).replace(".*", path.suffix)
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, copy, dirs_exist_ok=True)
    else:
        shutil.copy2(path, copy)
    return path.name


def _words(written: str, random: Random) -> list[str]:
    """A command of :attr:`Target.words`."""
    first, second, *_ = written.split()
    command = f"{first} {second}" if first == "index" else first
    words: list[str] = []
    skipped = False
    for part in written.split():
        if part.startswith("["):
            skipped = random.random() < 0.6
        word = random.choice(part.strip("[]").split("|"))
        if word == "{options}" and not skipped:
            words += random_options(command, random)
        elif not skipped:
            words.append({"{out}": output, "{hostile}": hostile}.get(word, lambda _, word=word: word)(random))
        if part.endswith("]"):
            skipped = False
    return words


def hostile(random: Random) -> str:
    return option_value("", random)
