"""Draw text on images, in any script.

The font is DejaVu Sans, which comes with matplotlib. Where it lacks a glyph, a font of the system is used; where no
font has the glyph, the code point of the character is written. An empty box is never drawn.
"""

import unicodedata
from functools import cache, lru_cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

_SHIPPED = Path(mpl.get_data_path(), "fonts", "ttf")
_BOLD = _SHIPPED / "DejaVuSans-Bold.ttf"
_REGULAR = _SHIPPED / "DejaVuSans.ttf"
_JOINERS = "\u200c\u200d"  # Persian and Indic spelling needs them; other format characters only reorder or hide text
_ELLIPSIS = "…"


@cache
def _coverage(font: Path) -> frozenset[str]:
    """Characters that ``font`` can draw; none for a file that is not a font."""
    try:
        codes = FT2Font(str(font)).get_charmap()
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(map(chr, codes))


@cache
def _system_fonts() -> tuple[Path, ...]:
    """Outline fonts of this machine, plain faces first.

    Left out: the fonts shipped with matplotlib (some use private encodings, one draws a box for every character) and
    emoji fonts (bitmaps of one size).
    """
    plain = sorted(font_manager.fontManager.ttflist, key=lambda font: (font.style != "normal", font.weight != 400))
    paths = (Path(font.fname) for font in plain if "emoji" not in font.name.lower())
    return tuple(dict.fromkeys(path for path in paths if path.parent != _SHIPPED and "LastResort" not in path.name))


@lru_cache(maxsize=512)
def _font_with(characters: frozenset[str]) -> Path | None:
    """First font that draws all ``characters``."""
    for font in (_BOLD, _REGULAR):
        if characters <= _coverage(font):
            return font
    return next((font for font in _system_fonts() if characters <= _coverage(font)), None)


def _spell(character: str) -> str:
    """``character`` in glyphs of DejaVu Sans: itself, its compatibility form (Ａ → A), or its code point."""
    covered = _coverage(_REGULAR)
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
    return spelt, _font_with(frozenset(spelt)) or _REGULAR


@lru_cache(maxsize=64)
def _load(font: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font), size)


def line_height(size: int) -> int:
    """Height in pixels of one line of text at font size ``size``."""
    return sum(_load(_REGULAR, size).getmetrics())


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
    ascent, _ = _load(_REGULAR, size).getmetrics()
    ImageDraw.Draw(canvas).text((0, ascent), line, fill=255, font=_load(font, size), anchor="ls")
    mask = np.array(canvas)
    mask.flags.writeable = False
    return mask
