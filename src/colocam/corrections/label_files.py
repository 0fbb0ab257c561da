"""Read label files that may come from a stranger: find them, parse them, check their numbers."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from colocam.errors import ColocamError, first_line
from colocam.types import Box
from colocam.utils.json_text import parse_json
from colocam.video.image_files import natural_key

LARGEST = 1 << 29
"""Bytes of a label file at most."""
FARTHEST = float(1 << 20)
"""Pixels from the upper left corner at most; no frame is so large."""


def files_of(path: Path, *endings: str) -> list[Path]:
    """The file itself, or all files of a folder and its folders with one of these endings, in natural order."""
    if not path.is_dir():
        return [path]
    found = [one for one in path.rglob("*") if one.suffix.lower() in endings and one.is_file()]
    found = [one for one in found if not one.name.startswith(".")]
    if not found:
        raise ColocamError(f"{path}: no file ends in {' or '.join(endings)}: is it of another format?")
    return sorted(found, key=lambda one: natural_key(str(one)))


def read_label_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        if path.stat().st_size > LARGEST:
            raise ColocamError(f"{path}: larger than {LARGEST >> 20} MiB, which no label file is")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ColocamError(f"{path}: not text in UTF-8: is it of another format?") from error
    except OSError as error:
        raise ColocamError(f"cannot read {path}: {error.strerror}") from error


def parse_xml(path: Path) -> ET.Element:
    """The root of an XML file. Documents that declare entities are refused: no label file needs them."""
    text = read_label_text(path)
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise ColocamError(f"{path}: declares entities, which no label file does")
    try:
        return ET.fromstring(text)  # noqa: S314 - there are no entities to expand
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise ColocamError(f"{path}: not XML ({first_line(error)}): is it of another format?") from error


def parse_label_json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """The content of a JSON file."""
    try:
        return parse_json(read_label_text(path))
    except ValueError as error:
        raise ColocamError(f"{path}: not JSON ({first_line(error)}): is it of another format?") from error


def whole_number(path: Path, name: str, value: object) -> int | None:
    """A whole number from 0; None for an empty value."""
    if value is None or value == "":
        return None
    number = finite_number(path, name, value)
    if number < 0 or number != int(number) or number > 1 << 32:
        raise ColocamError(f"{path}: {name} must be a whole number from 0, got {str(value)[:40]!r}")
    return int(number)


def finite_number(path: Path, name: str, value: object) -> float:
    """A number that is neither NaN nor infinite."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else float("nan")
    except (ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise ColocamError(f"{path}: {name} must be a number, got {str(value)[:40]!r}")
    return number


def corners_of(path: Path, corners: Sequence[object]) -> Box:
    """A box from its corners x1, y1, x2, y2; corners in the wrong order are swapped, as the tools do."""
    x1, y1, x2, y2 = (finite_number(path, "a corner of a box", corner) for corner in corners)
    if max(map(abs, (x1, y1, x2, y2))) > FARTHEST:
        raise ColocamError(f"{path}: a box lies at {x1:g}, {y1:g}, {x2:g}, {y2:g}, which no frame shows")
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def listed_objects(path: Path, value: object, name: str) -> list[dict[str, Any]]:
    """A list of JSON objects; empty for a missing one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ColocamError(f"{path}: {name} must be a list of objects: is it of another format?")
    return value
