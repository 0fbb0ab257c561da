"""Draw on frames: heat-map, predicted box in red, true boxes in green, and labels in any script."""

import os
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

from colocam.types import Box, Image, Localization, Overlay

Color = tuple[int, int, int]

PREDICTED: Color = (226, 26, 42)
TRUE: Color = (30, 224, 84)
PLAIN: Color = (24, 26, 32)
TINT: Color = (64, 156, 255)
_HALO: Color = (0, 0, 0)
_LOOKUP_SIDE = 640
CONTOUR = 0.5
"""Share of the maximum of a heat map along which its contour is drawn."""

HEAT_COLORS: Image = np.ascontiguousarray(
    cv2.applyColorMap(np.arange(256, dtype=np.uint8)[:, None], cv2.COLORMAP_INFERNO)[:, 0, ::-1], np.uint8
)
"""(256, 3) RGB of the heat-map: a perceptually uniform map, so equal steps in value look equal."""
HEAT_OPACITY: npt.NDArray[np.float32] = (0.75 * np.linspace(0, 1, 256)).astype(np.float32)
"""(256,) opacity of the heat-map: grows with the value, so that the background stays visible."""
_OWN = Path(__file__).parent / "fonts"
BOLD = _OWN / "DejaVuSans-Bold.ttf"
REGULAR = _OWN / "DejaVuSans.ttf"
_JOINERS = "\u200c\u200d"  # Persian and Indic spelling needs them; other format characters only reorder or hide text
_NO_LETTERS = ("emoji", "lastresort")
"""Fonts of bitmaps of one size, and a font that draws a box for every character."""
_STYLED = ("bold", "black", "heavy", "italic", "oblique", "light", "thin", "condensed", "medium")
_ELLIPSIS = "…"


def blend_heatmap(image: Image, heatmap: npt.NDArray[np.floating]) -> Image:
    """Lay ``heatmap`` (h, w), 0–1, over ``image`` (H, W, 3); the map is resized to the image, NaN counts as 0."""
    height, width = image.shape[:2]
    levels = np.round(255 * np.clip(np.nan_to_num(heatmap, nan=0.0), 0, 1)).astype(np.uint8)
    # Looking colors up is slow compared with resizing them, and above this size the difference is not visible.
    small = min(1.0, _LOOKUP_SIDE / max(height, width))
    levels = _resize(levels, max(1, round(width * small)), max(1, round(height * small))).astype(np.uint8)
    colors = _resize(cv2.applyColorMap(levels, HEAT_COLORS[:, None, :]), width, height)
    opacity = _resize(cv2.LUT(levels, HEAT_OPACITY), width, height)
    return np.asarray(cv2.blendLinear(np.ascontiguousarray(image), colors, 1 - opacity, opacity), np.uint8)


def draw_localization(
    image: Image,
    heatmap: npt.NDArray[np.floating] | None = None,
    box: Box | None = None,
    *,
    truth: Sequence[Box] = (),
    others: Sequence[Box] = (),
    label: Sequence[str] = (),
) -> Image:
    """Draw heat-map, boxes and label on a copy of a frame.

    Args:
        image: (H, W, 3) RGB.
        heatmap: (h, w), 0–1, of any size; None for none.
        box: predicted box in pixels of ``image``, drawn red; None for none.
        truth: true boxes in pixels of ``image``, drawn green and dashed.
        others: further predicted boxes, drawn red too.
        label: parts of the label, e.g. ``("cat", "93 %", "box 0.81")``, on one line if they fit, else on several; a
            part that is too wide is shortened with an ellipsis. The label stays inside the image.
    """
    canvas = image.copy() if heatmap is None else blend_heatmap(image, heatmap)
    for true_box in truth:
        _outline(canvas, true_box, TRUE, dashed=True)
    for predicted in (*others, *(() if box is None else (box,))):
        _outline(canvas, predicted, PREDICTED)
    if label:
        _strip(canvas, label, box)
    return canvas


def draw_objects(image: Image, first: Localization, *others: Localization, overlay: Overlay = "contour") -> Image:
    """Draw the objects of one frame (H, W, 3); each of several objects is labeled with its track and score.

    The mask of a segmenter is outlined instead of the heat-map, which it replaces.

    Args:
        image: (H, W, 3) RGB.
        first: what was found in the frame.
        others: further objects in the frame.
        overlay: what is drawn beside boxes: nothing (``box``), a line around the heat (``contour``), or the heat-map.
    """
    numbers = [_number(one) for one in (first, *others)]
    label = (*label_of(first)[:2], numbers[0]) if others else label_of(first)
    if first.refined and first.mask is not None:
        if overlay != "box":
            image = _traced(image, first.mask)
        return draw_localization(image, None, first.box, label=(*label, first.refined))
    if overlay == "contour":
        image = _contoured(image, first.heatmap)
    canvas = draw_localization(image, first.heatmap if overlay == "heat" else None, first.box, label=label)
    for other, number in zip(others, numbers[1:], strict=True):
        if other.box is not None:
            _outline(canvas, other.box, PREDICTED)
            _strip(canvas, [number], other.box)
    return canvas


def label_of(localization: Localization) -> tuple[str, str, str]:
    """Parts of the label of one frame: class, its probability in the shot, which decides it, and score of the box."""
    caption = f"box {localization.score:.2f}" if localization.box else "no box"
    shot = localization.shot_probability
    return localization.tag, f"{100 * (localization.probability if shot is None else shot):.0f} %", caption


def _number(localization: Localization) -> str:
    track = "" if localization.track is None else f"#{localization.track} "
    return f"{track}{localization.score:.2f}"


def _resize(values: npt.NDArray[Any], width: int, height: int) -> npt.NDArray[Any]:
    shrinks = values.shape[0] > height or values.shape[1] > width
    return cv2.resize(values, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)


def _line_width(canvas: Image) -> int:
    height, width = canvas.shape[:2]
    return round(2 + 0.003 * float(min(height, width)))


def _corners(canvas: Image, box: Box) -> tuple[int, int, int, int]:
    """Corner pixels of ``box``, clipped to the image."""
    height, width = canvas.shape[:2]
    x1, y1, x2, y2 = np.clip(np.rint(box), 0, (width - 1, height - 1) * 2).astype(int).tolist()
    return x1, y1, x2, y2


def _outline(canvas: Image, box: Box, color: Color, *, dashed: bool = False) -> None:
    """Draw ``box`` from its corner pixels inwards, with a dark line on both sides for contrast to any background."""
    x1, y1, x2, y2 = _corners(canvas, box)
    width = _line_width(canvas)
    inside = canvas[y1 : y2 + 1, x1 : x2 + 1]
    _border(canvas[max(y1 - 1, 0) : y2 + 2, max(x1 - 1, 0) : x2 + 2], 1, _HALO)
    _border(inside, width + 1, _HALO)
    _border(inside, width, color)
    if dashed:
        rows, columns = (np.flatnonzero(_gaps(length, 4 * width)) for length in inside.shape[:2])
        for side in (slice(None, width), slice(-width, None)):
            inside[rows, side] = _HALO
            inside[side, columns] = _HALO


def _gaps(length: int, dash: int) -> npt.NDArray[np.bool_]:
    """(length,) where a dashed line has its gaps; there is none in its middle."""
    gaps: npt.NDArray[np.bool_] = (np.abs(np.arange(length) - length // 2) + dash // 2) // dash % 2 == 1
    return gaps


def _traced(image: Image, mask: npt.NDArray[np.bool_]) -> Image:
    """A copy of an image (H, W, 3) with the outline of a mask (H, W), and its inside tinted."""
    canvas = image.copy()
    canvas[mask] = (0.65 * canvas[mask] + 0.35 * np.array(TINT)).astype(np.uint8)
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(canvas, contours, -1, TINT, max(1, _line_width(canvas) // 2))
    return canvas


def _contoured(image: Image, heatmap: npt.NDArray[np.floating]) -> Image:
    """A copy of an image (H, W, 3) with a thin line where a heat map (h, w) falls to half of its maximum."""
    canvas = image.copy()
    height, width = image.shape[:2]
    heat = np.nan_to_num(heatmap, nan=0.0).astype(np.float32)
    peak = float(heat.max(initial=0.0))
    if peak <= 0:
        return canvas
    inside = (_resize(heat, width, height) >= CONTOUR * peak).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    line = max(1, _line_width(canvas) // 2)
    for color, thickness in ((_HALO, line + 2), (TINT, line)):
        cv2.drawContours(canvas, contours, -1, color, thickness)
    return canvas


def _border(area: Image, width: int, color: Color) -> None:
    """Paint the outermost ``width`` pixels of ``area``."""
    for side in (area[:width], area[-width:], area[:, :width], area[:, -width:]):
        side[:] = color


def _strip(canvas: Image, label: Sequence[str], box: Box | None) -> None:
    """Write ``label`` where it hides least of the box; it covers at most 40 % of the image's height.

    Parts stand in as few lines as their order allows. Each is drawn by itself, so that a tag written from right to left
    does not reorder the numbers beside it.
    """
    height, width = canvas.shape[:2]
    size = max(10, round(6 + 0.022 * min(height, width)))
    pad, gap = max(2, size // 5), round(0.7 * size)
    ascent, descent = _load(REGULAR, size).getmetrics()
    line = ascent + descent
    lines = _lines([shorten(part, size, width - 2 * pad) for part in label], size, gap, width - 2 * pad)
    lines = lines[: round(0.4 * height - pad) // line]
    if not lines:
        return
    strip_height = len(lines) * line + pad
    strip_width = max(left + wide for parts in lines for _, left, wide in parts) + 2 * pad
    strip = PillowImage.new("RGB", (strip_width, strip_height), PLAIN if box is None else PREDICTED)
    pen = ImageDraw.Draw(strip)
    for number, parts in enumerate(lines):
        for text, left, _ in parts:
            shown, font = drawable(text)
            place = (pad + left, pad // 2 + number * line + ascent)
            pen.text(place, shown, "white", _load(font, size), anchor="ls")
    x, y = 0, 0
    if box is not None:
        x1, y1, _, y2 = _corners(canvas, box)
        x = min(x1, width - strip_width)
        y = _row(y1, y2, strip_height, height)
    canvas[y : y + strip_height, x : x + strip_width] = np.asarray(strip)


def _row(y1: int, y2: int, strip: int, height: int) -> int:
    """Top row of the label: above the box, below it, else the edge of the image where it hides less of the box."""
    if y1 >= strip:
        return y1 - strip
    if y2 + 1 + strip <= height:
        return y2 + 1
    hidden_at_top, hidden_at_bottom = strip - y1, strip - (height - 1 - y2)
    return 0 if hidden_at_top <= hidden_at_bottom else height - strip


def _lines(parts: Sequence[str], size: int, gap: int, width: int) -> list[list[tuple[str, int, int]]]:
    """Each part that fits with its left edge and its width in pixels, in lines of at most ``width`` pixels."""
    lines: list[list[tuple[str, int, int]]] = []
    left = 0
    for part in filter(None, parts):
        wide = text_width(part, size)
        if not lines or left + wide > width:
            lines.append([])
            left = 0
        lines[-1].append((part, left, wide))
        left += wide + gap
    return lines


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
    home = Path.home() if "HOME" in os.environ else Path("/")
    folders = [
        *(Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"),
        *(Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"),
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

    def has_all(font: Path) -> bool:
        return all(draws(font, one) for one in characters)

    return next(filter(has_all, (BOLD, REGULAR)), None) or next(filter(has_all, system_fonts()), None)


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
    spelled = "".join(map(_spell, line))
    return spelled, _font_with(frozenset(spelled)) or REGULAR


@lru_cache(maxsize=64)
def _load(font: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font), size)


@lru_cache(maxsize=4096)
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
    fits = bisect_right(range(1, len(line)), width, key=lambda n: text_width(line[:n].rstrip() + _ELLIPSIS, size))
    return line[:fits].rstrip() + _ELLIPSIS if fits else ""
