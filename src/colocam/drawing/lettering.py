"""Font files: those of this package, those of the system, and the characters that a file can draw."""

import os
import struct
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

_OWN = Path(__file__).parent / "fonts"
BOLD = _OWN / "DejaVuSans-Bold.ttf"
REGULAR = _OWN / "DejaVuSans.ttf"
_UNICODE = {(0, 3), (0, 4), (0, 6), (3, 1), (3, 10)}
"""(platform, encoding) of the character tables that are keyed by code points."""
_NO_LETTERS = ("emoji", "lastresort")
"""Fonts of bitmaps of one size, and a font that draws a box for every character."""
_STYLED = ("bold", "black", "heavy", "italic", "oblique", "light", "thin", "condensed", "medium")


@cache
def coverage(font: Path) -> frozenset[str]:
    """Characters that a TrueType or OpenType file can draw; none for a file that is not a font."""
    try:
        return frozenset(map(chr, _code_points(font.read_bytes())))
    except (OSError, struct.error, ValueError):
        return frozenset()


def _code_points(data: bytes) -> Iterator[int]:
    """Code points of the table ``cmap``; of a collection, those of its first font."""
    start = struct.unpack_from(">I", data, 12)[0] if data[:4] == b"ttcf" else 0
    for index in range(struct.unpack_from(">H", data, start + 4)[0]):
        name, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * index)
        if name == b"cmap":
            for number in range(struct.unpack_from(">H", data, offset + 2)[0]):
                platform, encoding, at = struct.unpack_from(">HHI", data, offset + 4 + 8 * number)
                if (platform, encoding) in _UNICODE:
                    yield from _of_subtable(data, offset + at)


def _of_subtable(data: bytes, at: int) -> Iterator[int]:
    """Code points with a glyph in a subtable of format 4 (16 bits) or 12 (32 bits)."""
    kind = struct.unpack_from(">H", data, at)[0]
    if kind == 12:
        for index in range(min(struct.unpack_from(">I", data, at + 12)[0], len(data) // 12)):
            first, last, glyph = struct.unpack_from(">III", data, at + 16 + 12 * index)
            yield from range(first + (glyph == 0), min(last, sys.maxunicode) + 1)
    elif kind == 4:
        count = struct.unpack_from(">H", data, at + 6)[0] // 2
        ends, starts, deltas, offsets = (
            struct.unpack_from(f">{count}H", data, at + 14 + 2 * (count * part + (part > 0))) for part in range(4)
        )
        for index, (first, last) in enumerate(zip(starts, ends, strict=True)):
            for code in range(first, min(last, 0xFFFE) + 1):
                glyph = code
                if offsets[index]:
                    place = at + 16 + 2 * (3 * count + index) + offsets[index] + 2 * (code - first)
                    glyph = struct.unpack_from(">H", data, place)[0]
                    if not glyph:
                        continue
                if (glyph + deltas[index]) & 0xFFFF:
                    yield code


@cache
def system_fonts() -> tuple[Path, ...]:
    """Outline fonts of this machine, plain faces first."""
    home = Path.home() if "HOME" in os.environ or sys.platform == "win32" else Path("/")
    folders = [
        *(Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"),
        *(Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"),
        Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts",
    ]
    found = (
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in {".ttf", ".otf", ".ttc"}
        and not any(word in path.name.lower() for word in _NO_LETTERS)
    )
    return tuple(sorted(dict.fromkeys(found), key=lambda path: any(word in path.name.lower() for word in _STYLED)))


_JOINERS = "\u200c\u200d"  # Persian and Indic spelling needs them; other format characters only reorder or hide text
_ELLIPSIS = "…"


@lru_cache(maxsize=512)
def _font_with(characters: frozenset[str]) -> Path | None:
    """First font that draws all ``characters``."""
    for font in (BOLD, REGULAR):
        if characters <= coverage(font):
            return font
    return next((font for font in system_fonts() if characters <= coverage(font)), None)


def _spell(character: str) -> str:
    """``character`` in glyphs of DejaVu Sans: itself, its compatibility form (Ａ → A), or its code point."""
    covered = coverage(REGULAR)
    if character in covered:
        return character
    plain = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    if plain and covered.issuperset(plain):
        return plain
    return character.encode("ascii", "backslashreplace").decode("ascii")


def drawable(text: str) -> tuple[str, Path]:
    """Return ``text`` in characters that one font can draw, and the file of that font.

    Line breaks and control characters become spaces; invisible format characters are dropped.
    """
    kept = (c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf" or c in _JOINERS)
    line = " ".join("".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in kept).split())
    font = _font_with(frozenset(line))
    if font is not None:
        return line, font
    spelt = "".join(map(_spell, line))
    return spelt, _font_with(frozenset(spelt)) or REGULAR


@lru_cache(maxsize=64)
def _load(font: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font), size)


def line_height(size: int) -> int:
    """Height in pixels of one line of text at font size ``size``."""
    return sum(_load(REGULAR, size).getmetrics())


def text_width(text: str, size: int) -> int:
    """Width in pixels of ``text`` at font size ``size``."""
    line, font = drawable(text)
    return int(np.ceil(_load(font, size).getlength(line)))


@lru_cache(maxsize=512)
def shorten(text: str, size: int, width: int) -> str:
    """Cut ``text`` at its end, with an ellipsis, until it is at most ``width`` pixels wide; "" if nothing fits."""
    line, _ = drawable(text)
    if text_width(line, size) <= width:
        return line
    fits, too_long = 0, len(line)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if text_width(line[:middle].rstrip() + _ELLIPSIS, size) <= width:
            fits = middle
        else:
            too_long = middle
    return line[:fits].rstrip() + _ELLIPSIS if fits else ""


@lru_cache(maxsize=512)
def text_mask(text: str, size: int) -> npt.NDArray[np.uint8]:
    """Draw one line of ``text``: ink coverage 0–255, shape (line_height(size), text_width(text, size)).

    Masks are cached, since frames of a video have similar labels; they are read-only.
    """
    line, font = drawable(text)
    height, width = line_height(size), max(1, text_width(text, size))
    canvas = Image.new("L", (width, height))
    ascent, _ = _load(REGULAR, size).getmetrics()
    ImageDraw.Draw(canvas).text((0, ascent), line, fill=255, font=_load(font, size), anchor="ls")
    mask = np.array(canvas)
    mask.flags.writeable = False
    return mask
