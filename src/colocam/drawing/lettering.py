"""Draw text on images, in any script.

The font is DejaVu Sans, which comes with this package. Where it lacks a glyph, a font of the system is used; where no
font has the glyph, the code point of the character is written. An empty box is never drawn.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from colocam.drawing.font_files import BOLD, REGULAR, coverage, system_fonts

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
