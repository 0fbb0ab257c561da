"""Options of a command, taken from the command line itself, with sound and hostile values."""

from functools import cache
from random import Random
from typing import Any

import typer

from tests.fuzz.hostile_values import number, text

SOUND: dict[str, tuple[str, ...]] = {
    "table": ("csv", "parquet"),
    "smooth": ("offline", "online", "none"),
    "tag": ("cat", "owl"),
    "presence": ("0.5", "0", "1"),
    "threshold": ("0.4", "0", "1"),
    "color_mean": ("off", "frame", "clip"),
    "chooser": ("largest", "tags-only"),
    "every": ("1", "2", "1000"),
    "fps": ("5", "25", "1000"),
    "start": ("0.1", "0", "5"),
    "end": ("0.2", "100"),
    "frames": ("1:3", ":2", "3:", "5:2"),
    "batch": ("1", "3", "64"),
    "device": ("cpu",),
    "format": ("mp4", "matroska", "image2", "hls", "concat", "rawvideo", "mpegts", "lavfi"),
    "split": ("test", "val", "train"),
    "cams": ("cam,layercam", "all", "gradcam"),
    "share": ("0.5", "0", "1"),
    "apart": ("0", "2"),
    "tolerance": ("0", "4"),
    "size": ("224", "1"),
    "preset": ("demo", "paper"),
    "overrides": ("seed=3", "classifier.epochs=1", "localizer.color_mean=off", "cam=gradcam", "localizer.frames=2"),
    "version": ("1", "2.2"),
    "seed": ("1",),
}
OUTPUTS = (
    "out",
    "out",
    "new/out",
    ".",
    "out\nput",
    "-",
    "o" * 255,
    "o" * 300,
    "out.csv",
    "out.onnx",
    "ä",
    "videos",
    "run",
)
SKIPPED = {"help", "out", "json", "version_", "install_completion", "show_completion", "refine", "boxes", "dense"}


def random_options(command: str, random: Random, most: int = 3) -> list[str]:
    """Up to ``most`` options of a command; a third of the values are hostile. Paths are never absolute."""
    words: list[str] = []
    known = [one for one in _parameters(command) if one.name not in SKIPPED]
    for one in random.sample(known, min(len(known), random.randint(0, most))):
        name = random.choice([*one.opts, *one.secondary_opts])
        if one.is_flag:
            words.append(name)
        else:
            words += [name, option_value(one.name, random)]
    return words


def option_value(name: str, random: Random) -> str:
    """A value of an option."""
    if name in SOUND and random.random() < 0.66:
        return random.choice(SOUND[name])
    if name == "overrides":
        return f"{random.choice(_keys())}={random.choice((number, text))(random)}".replace("\0", "")
    value = random.choice((number, text))(random).replace("\0", "").replace("\ud800", "")
    return value.lstrip("/") or "x"


def output(random: Random, usual: str = "out") -> str:
    """A relative path to write to, in most inputs the usual one."""
    return usual if random.random() < 0.85 else random.choice(OUTPUTS)


@cache
def _keys() -> list[str]:
    """All keys of a configuration, and two that do not exist."""
    from colocam.config import Config  # noqa: PLC0415

    def flat(values: dict[str, Any], prefix: str) -> list[str]:
        inner = [flat(value, f"{prefix}{key}.") for key, value in values.items() if isinstance(value, dict) and value]
        return [*(f"{prefix}{key}" for key in values), *(one for some in inner for one in some)]

    return [*flat(Config().model_dump(), ""), "a.b.c", "a" * 1000]


@cache
def _parameters(command: str) -> list[Any]:
    from colocam.cli import app  # noqa: PLC0415 - the package is imported by the runner first

    group: Any = typer.main.get_command(app)
    for part in command.split():
        group = group.get_command(typer.Context(group), part)
    return [one for one in group.params if one.param_type_name == "option"]
