"""Values that the shell offers for options after Tab. Nothing here imports torch: an answer must come at once."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer import Context

from colocam.errors import ColocamError
from colocam.utils.extensions import REGISTRIES, load_light_extensions

Values = Callable[[Context, str], list[str | tuple[str, str]]]
"""Takes the context and what is typed so far; gives values, with their titles where they have any."""


def one_of(*names: str) -> Values:
    """Offer fixed values."""

    def values(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001 - typer's signature
        return list(names)

    return values


def presets(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001 - typer's signature
    """Offer the shipped presets."""
    from colocam.config.loading import preset_names

    return list(preset_names())


def ready_models(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the ready models of this installation; the shell offers files where none fits."""
    from colocam.inference.ready_models import ready_models as installed

    return list(installed())


def written_formats(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the label formats that ``export`` writes."""
    from colocam.labels import writable

    load_light_extensions()
    return _titled(writable())


def read_formats(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the label formats that ``import`` reads."""
    from colocam.labels import readable

    load_light_extensions()
    return _titled(readable())


def color_means(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the ways to complete maps by colour."""
    from colocam.config import COLOR_MEANS

    return list(COLOR_MEANS)


def choosers(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the rules that choose a box."""
    from colocam.config.schema import CHOOSERS

    load_light_extensions()
    return list(dict.fromkeys((*CHOOSERS, *REGISTRIES.get("colocam.boxes.CHOOSERS", ()))))


def cams(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer CAM methods, also after a comma: ``cam,lay`` becomes ``cam,layercam``."""
    from colocam.config.schema import CAMS

    before, comma, _ = incomplete.rpartition(",")
    listed = before.split(",")
    load_light_extensions()
    names = dict.fromkeys((*CAMS, *REGISTRIES.get("colocam.cams.CAMS", ())))
    further: list[str | tuple[str, str]] = [f"{before}{comma}{name}" for name in names if name not in listed]
    return further if comma else [*further, "all"]


def tags(ctx: Context, incomplete: str) -> list[str | tuple[str, str]]:  # noqa: ARG001
    """Offer the tags of the run that the command line names."""
    from colocam.config.card import parse_card

    for folder in _named(ctx):
        path = folder / "model.json"
        try:
            if path.is_file():
                return list(parse_card(path.read_text(encoding="utf-8", errors="replace"), str(path)).tags)
        except (ColocamError, OSError):  # the command itself will say what is wrong
            continue
    return []


def _named(ctx: Context) -> Iterator[Path]:
    """What the command line names so far; arguments before an option without its value are not assigned yet."""
    for value in (*ctx.params.values(), ctx.args):
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, str | Path):
                yield Path(one).expanduser()


def _titled(registry: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    return [(name, str(entry.title)) for name, entry in registry.items()]
