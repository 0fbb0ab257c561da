"""Draw text on images, in any script, with the fonts of this package and those of the system."""

import os
import sys
import unicodedata
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

_OWN = Path(__file__).parent / "fonts"
BOLD = _OWN / "DejaVuSans-Bold.ttf"
REGULAR = _OWN / "DejaVuSans.ttf"
_JOINERS = "\u200c\u200d"  # Persian and Indic spelling needs them; other format characters only reorder or hide text
_NO_LETTERS = ("emoji", "lastresort")
"""Fonts of bitmaps of one size, and a font that draws a box for every character."""
_STYLED = ("bold", "black", "heavy", "italic", "oblique", "light", "thin", "condensed", "medium")
_ELLIPSIS = "…"


@lru_cache(maxsize=4096)
def draws(font: Path, character: str) -> bool:
    """Whether a font file has a glyph for a character: its picture is not the one for no character at all."""
    if character.isspace() or character in _JOINERS:
        return True
    try:
        # The simple layout adds no circle below a mark that the font lacks.
        face = ImageFont.truetype(str(font), 32, layout_engine=ImageFont.Layout.BASIC)
        return bytes(face.getmask(character)) != bytes(face.getmask("\uffff"))
    except (OSError, ValueError):  # not a font, or one of bitmaps of another size
        return False


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


@lru_cache(maxsize=512)
def _font_with(characters: frozenset[str]) -> Path | None:
    """First font that draws all ``characters``."""
    for fonts in (lambda: (BOLD, REGULAR), system_fonts):  # those of the system are only looked for where needed
        for font in fonts():
            if all(draws(font, one) for one in characters):
                return font
    return None


def _spell(character: str) -> str:
    """``character`` in glyphs of DejaVu Sans: itself, its compatibility form (Ａ → A), or its code point."""
    if draws(REGULAR, character):
        return character
    plain = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    if plain and all(draws(REGULAR, one) for one in plain):
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
