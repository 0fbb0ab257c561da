"""Inputs of ``colocam localize``: films, folders, images, models, segmenters, options."""

import os
from functools import partial
from random import Random

from tests.fuzz.case import Bench, Case
from tests.fuzz.hostile_values import text
from tests.fuzz.mutate_films import mutated_film, mutated_image
from tests.fuzz.mutate_models import mutated_onnx, mutated_safetensors
from tests.fuzz.mutate_trees import mutated_json
from tests.fuzz.options import option_value, output, random_options

QUICK = ["--device", "cpu"]


def film(bench: Bench) -> Case:
    """A changed film."""
    name = _film(bench)
    return _case(_model(bench), [name], [] if bench.maybe(0.5) else ["--no-video"])


def piped_film(bench: Bench) -> Case:
    """A changed film on the standard input."""
    case = _case(_model(bench), ["-"], ["--no-video"])
    case.stdin = _film(bench)
    return case


def folder(bench: Bench) -> Case:
    """A folder of sound and changed films, and of what is no film."""
    for name in bench.random.sample(bench.names("films"), 2):
        bench.copy(name, f"in/{name}")
    _film(bench, "in/")
    place = bench.folder / "in"
    oddities = {
        "loop.mp4": lambda path: path.symlink_to("loop.mp4"),
        "gone.mp4": lambda path: path.symlink_to("nowhere.mp4"),
        "pipe.mp4": os.mkfifo,
        "empty.mp4": lambda path: path.touch(),
        "folder.mp4": lambda path: path.mkdir(),
        "text.mp4": lambda path: path.write_text("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ntext.mp4\n"),
        "up": lambda path: path.symlink_to(".."),
        f"{_file_name(bench.random)}.mp4": lambda path: path.write_bytes(
            (place / "films").iterdir().__next__().read_bytes()
        ),
    }
    for name in bench.random.sample(sorted(oddities), 2):
        oddities[name](place / name)
    return _case("model.onnx" if bench.copy("model.onnx") else "", ["in"], ["--no-video", "--every", "3"])


def images(bench: Bench) -> Case:
    """A folder of images, some changed."""
    kind = bench.random.choice(sorted({name.split("/")[1] for name in bench.names("images")}))
    bench.copy(f"images/{kind}", "in")
    names = sorted(path.name for path in (bench.folder / "in").iterdir())
    for name in bench.random.sample(names, bench.random.choice((1, 1, 3))):
        bench.change(f"in/{name}", mutated_image)
    return _case(_model(bench), ["in"], ["--no-video"] if bench.maybe(0.7) else [])


def run_model(bench: Bench) -> Case:
    """A changed model.json or model.safetensors."""
    run = bench.copy(bench.random.choice(("run", "stored-run")), "run")
    if bench.maybe(0.6):
        bench.change(f"{run}/model.json", mutated_json)
    if not bench.changed or bench.maybe(0.2):
        bench.change(f"{run}/model.safetensors", mutated_safetensors)
    return _case(run, [bench.copy("films/h264.mp4", "film.mp4")], ["--no-video"])


def onnx_model(bench: Bench) -> Case:
    """A changed ONNX file."""
    name = bench.change(bench.copy("model.onnx"), mutated_onnx)
    more = ["--instances"] if bench.maybe(0.2) else ["--masks"] if bench.maybe(0.2) else []
    return _case(name, [bench.copy("films/h264.mp4", "film.mp4")], ["--no-video", *more])


def segmenter(bench: Bench) -> Case:
    """A changed encoder or decoder, or a .safetensors file that is no MobileSAM."""
    bench.copy("segmenter")
    if bench.maybe(0.15):
        bench.copy("run/model.safetensors", "sam.safetensors")
        name = bench.change("sam.safetensors", mutated_safetensors)
    else:
        part = bench.random.choice(("encoder", "decoder", "decoder"))
        bench.change(f"segmenter/small.{part}.onnx", mutated_onnx)
        name = "segmenter"
    return _case(_model(bench), [bench.copy("films/h264.mp4", "film.mp4")], ["--no-video", "--refine", name])


def options(bench: Bench) -> Case:
    """Options and output names of every kind."""
    model, name = _model(bench), bench.copy("films/h264.mp4", "film.mp4")
    out = output(bench.random)
    words = ["localize", model, name, "-o", out, *random_options("localize", bench.random, 4)]
    if bench.maybe(0.1):
        words[1 + bench.random.randrange(2)] = option_value("", bench.random)
    return Case(words, [out])


def results(bench: Bench) -> Case:
    """Results that exist already, with changed descriptions, tables and leftovers."""
    bench.copy("results/plain", "out")
    name = bench.copy("films/h264.mp4", "h264.mp4")
    if bench.maybe(0.8):
        bench.change("out/h264.video.json", mutated_json)
    if bench.maybe(0.3):
        (bench.folder / "out" / "h264.csv").write_text("mine")
    more = ["--overwrite"] if bench.maybe(0.3) else []
    case = _case(bench.copy("model.onnx"), [name], more)
    # A description that was changed may still vouch for its results, which are then replaced.
    case.owned = ["out/h264.video.json", *(["out"] if more or not bench.changed else ["out/h264.csv", "out/h264.mp4"])]
    return case


def _film(bench: Bench, below: str = "") -> str:
    names = bench.names("films")
    name = bench.random.choice(names)
    others = [(bench.corpus / one).read_bytes() for one in bench.random.sample(names, 2)]
    bench.copy(name, f"{below}changed-{name.split('/')[1]}")
    return bench.change(f"{below}changed-{name.split('/')[1]}", partial(mutated_film, others=others))


def _model(bench: Bench) -> str:
    return bench.copy("model.onnx") if bench.maybe(0.6) else bench.copy("run")


def _case(model: str, videos: list[str], more: list[str]) -> Case:
    return Case(["localize", model, *videos, "-o", "out", *more, *QUICK], ["out"])


def _file_name(random: Random) -> str:
    """A legal file name without a slash, of at most 251 bytes."""
    name = text(random).replace("\0", "").replace("/", "").replace("\ud800", "")[:251]
    return name if name.strip(".") else "odd"
