"""Values that the shell offers for options after Tab. Nothing here imports torch: an answer must come at once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer import Context

from colocam.errors import ColocamError
from colocam.utils.extensions import REGISTRIES, load_light_extensions


def one_of(*names: str) -> Callable[[], list[str]]:
    """Offer fixed values."""
    return lambda: list(names)


def presets() -> list[str]:
    """Offer the shipped presets."""
    from colocam.config.loading import preset_names

    return list(preset_names())


def ready_models() -> list[str]:
    """Offer the ready models of this installation; the shell offers files where none fits."""
    from colocam.cli.ready_models import ready_models as installed

    return list(installed())


def written_formats() -> list[tuple[str, str]]:
    """Offer the label formats that ``export`` writes."""
    from colocam.labels import writable

    load_light_extensions()
    return _titled(writable())


def read_formats() -> list[tuple[str, str]]:
    """Offer the label formats that ``import`` reads."""
    from colocam.labels import readable

    load_light_extensions()
    return _titled(readable())


def devices() -> list[str]:
    """Offer the devices."""
    return ["cpu", "cuda"]


def choosers() -> list[str]:
    """Offer the rules that choose a box."""
    from colocam.config.schema import CHOOSERS

    load_light_extensions()
    return list(dict.fromkeys((*CHOOSERS, *REGISTRIES.get("colocam.boxes.CHOOSERS", ()))))


def cams(incomplete: str) -> list[str]:
    """Offer CAM methods, also after a comma: ``cam,lay`` becomes ``cam,layercam``."""
    from colocam.config.schema import CAMS

    before, comma, _ = incomplete.rpartition(",")
    listed = before.split(",")
    load_light_extensions()
    names = dict.fromkeys((*CAMS, *REGISTRIES.get("colocam.cams.CAMS", ())))
    further = [f"{before}{comma}{name}" for name in names if name not in listed]
    return further if comma else [*further, "all"]


def tags(ctx: Context) -> list[str]:
    """Offer the tags of the run that the command line names."""
    from colocam.config.card import read_card

    for folder in _named(ctx):
        with suppress(ColocamError, OSError):  # the command itself will say what is wrong
            return list(read_card(folder).tags)
    return []


def _named(ctx: Context) -> Iterator[Path]:
    """What the command line names so far; arguments before an option without its value are not assigned yet."""
    for value in (*ctx.params.values(), ctx.args):
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, str | Path):
                yield Path(one).expanduser()


def _titled(registry: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(entry.title)) for name, entry in registry.items()]
