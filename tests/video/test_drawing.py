from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.ft2font import FT2Font

from colocam.types import Box, Localization
from colocam.video import drawing
from colocam.video.drawing import (
    PREDICTED,
    TRUE,
    blend_heatmap,
    draw_localization,
    draw_objects,
    drawable,
    label_of,
    shorten,
    text_width,
)

GRAY = 128


def plain(width=120, height=90, value=GRAY):
    return np.full((height, width, 3), value, np.uint8)


def painted(image, color):
    return (image == np.array(color, np.uint8)).all(-1)


def bounds(mask):
    ys, xs = np.nonzero(mask)
    return xs.min(), ys.min(), xs.max(), ys.max()


def test_true_boxes_are_dashed_and_predicted_ones_are_not():
    image = draw_localization(plain(), box=Box(20, 30, 60, 70), truth=[Box(70, 10, 110, 50)])
    predicted, true = image[30, 20:61], image[10, 70:111]
    assert (predicted == PREDICTED).all()
    gaps = ~(true == TRUE).all(axis=1)
    assert 0.25 < gaps.mean() < 0.75
    assert np.count_nonzero(np.diff(gaps.astype(int)) == 1) > 1


def test_the_given_picture_is_not_changed():
    image = plain()
    before = image.copy()
    draw_localization(image, np.ones((4, 4)), Box(1, 2, 30, 40), truth=[Box(1, 2, 3, 4)], label=("cat",))
    assert np.array_equal(image, before)


def test_heatmap_is_the_color_map_with_growing_opacity():
    values = np.linspace(0, 1, 11)
    heatmap = np.repeat(values[None], 5, 0)
    image = blend_heatmap(plain(11, 5), heatmap)
    for column, value in enumerate(values):
        color = 255 * np.array(mpl.colormaps["inferno"](value)[:3])
        expected = (1 - 0.75 * value) * GRAY + 0.75 * value * color
        assert np.abs(image[2, column] - expected).max() <= 3
    assert (image[:, 0] == GRAY).all(), "no heat, no change"


def test_heatmap_of_any_size_lands_at_its_place():
    for size in (7, 28, 400):
        heatmap = np.zeros((size, size), np.float32)
        heatmap[: size // 2, size // 2 :] = 1
        for width, height in ((120, 90), (1400, 700)):
            changed = (blend_heatmap(plain(width, height), heatmap) != GRAY).any(-1)
            assert changed[height // 4, 3 * width // 4]
            assert not changed[3 * height // 4, 3 * width // 4]
            assert not changed[height // 4, width // 5]


def test_nan_and_values_out_of_range_are_tamed():
    image = blend_heatmap(plain(3, 1), np.array([[np.nan, -5.0, 7.0]]))
    assert (image[0, :2] == GRAY).all()
    assert np.array_equal(image[0, 2], blend_heatmap(plain(3, 1), np.ones((1, 3)))[0, 2])


def label_area(width, height, box, label):
    """Pixels that the label alone changes."""
    without = draw_localization(plain(width, height), box=box)
    return (draw_localization(plain(width, height), box=box, label=label) != without).any(-1)


@pytest.mark.parametrize(("width", "height"), [(96, 72), (96, 96), (320, 240), (1920, 1080)])
@pytest.mark.parametrize(
    "where", [(0.3, 0.4, 0.7, 0.7), (0.9, 0.02, 0.99, 0.2), (0.0, 0.0, 1.0, 1.0), (0.5, 0.8, 0.9, 1.0)]
)
def test_labels_stay_inside_and_readable(width, height, where):
    box = Box(where[0] * width, where[1] * height, where[2] * width, where[3] * height)
    image = draw_localization(plain(width, height), box=box, label=("кошка", "93 %", "box 0.81"))
    white = painted(image, (255, 255, 255))
    x1, y1, x2, y2 = bounds(white)
    assert x1 > 0
    assert y1 > 0
    assert x2 < width - 1
    assert y2 < height - 1
    assert y2 - y1 >= 7, "letters of at least 7 pixels"
    assert label_area(width, height, box, ("кошка", "93 %", "box 0.81")).sum() < 0.45 * width * height


def test_right_to_left_tags_leave_the_order_of_the_parts():
    first = draw_localization(plain(320, 240), label=("قطة", "93 %"))
    second = draw_localization(plain(320, 240), label=("قطة", "94 %"))
    changed = (first != second).any(-1)
    tag_only = painted(draw_localization(plain(320, 240), label=("قطة",)), (255, 255, 255))
    assert bounds(changed)[0] > bounds(tag_only)[2]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 150),
    st.integers(1, 150),
    st.lists(st.floats(-50, 200), min_size=4, max_size=4),
    st.text(max_size=12),
)
def test_nothing_breaks_the_drawing(width, height, corners, tag):
    x1, x2, y1, y2 = (*sorted(corners[:2]), *sorted(corners[2:]))
    image = draw_localization(
        plain(width, height), np.ones((3, 3)), Box(x1, y1, x2, y2), truth=[Box(y1, x1, y2, x2)], label=(tag, "1 %")
    )
    assert image.shape == (height, width, 3)
    assert image.dtype == np.uint8


def test_one_object_is_drawn_as_ever_and_several_carry_numbers():
    heatmap, ground = np.zeros((2, 2), np.float32), np.full((120, 200, 3), 90, np.uint8)
    first = Localization(0, 0.0, "cat", 0.9, Box(10, 40, 60, 100), 0.8, heatmap, track=3)
    second = Localization(0, 0.0, "cat", 0.9, Box(120, 40, 180, 100), 0.6, heatmap, track=4)
    alone = draw_objects(ground, first)
    np.testing.assert_array_equal(alone, draw_localization(ground, heatmap, first.box, label=label_of(first)))
    both = draw_objects(ground, first, second)
    left = draw_localization(ground, heatmap, first.box, label=("cat", "90 %", "#3 0.80"))
    right = draw_localization(ground, heatmap, second.box, label=("#4 0.60",))
    np.testing.assert_array_equal(both[:, :110], left[:, :110])
    np.testing.assert_array_equal(both[:, 119:], right[:, 119:])


def test_label_of_a_localization():
    heatmap = np.zeros((2, 2), np.float32)
    assert label_of(Localization(0, 0.0, "cat", 0.934, Box(0, 0, 1, 1), 0.806, heatmap)) == ("cat", "93 %", "box 0.81")
    decided = Localization(0, 0.0, "cat", 0.2, None, 0.0, heatmap, shot_probability=0.75)
    assert label_of(decided) == ("cat", "75 %", "no box")
    assert label_of(Localization(0, 0.0, "cat", 1.0, None, 0.0, heatmap)) == ("cat", "100 %", "no box")


def test_the_mask_of_a_segmenter_is_tinted_and_outlined_instead_of_the_heat_map():
    image = np.full((60, 80, 3), 100, np.uint8)
    mask = np.zeros((60, 80), bool)
    mask[25:45, 20:50] = True
    heat = np.ones((8, 8), np.float32)
    found = Localization(0, 0.0, "cat", 0.9, Box(20, 25, 50, 45), 0.8, heat, mask=mask, refined="MobileSAM")
    drawn = draw_objects(image, found)
    inside = drawn[33:37, 30:40]
    assert (inside[..., 2] > inside[..., 0]).all()
    assert (drawn[55:, 60:] == 100).all()
    assert (draw_objects(image, replace(found, refined=None))[55:, 60:] != 100).any()


def glyphs(font):
    return {chr(code) for code in FT2Font(str(font)).get_charmap()}


@pytest.mark.parametrize("text", ["cat", "кошка", "γάτα", "Katze äöüß", "قطة", "חתול", "naïve café"])
def test_scripts_of_dejavu_are_drawn_as_they_are(text):
    line, font = drawable(text)
    assert line == text
    assert font.name.startswith("DejaVuSans")


@pytest.mark.parametrize("text", ["猫", "ねこ", "고양이", "\U0001f408", "\ue000", "\udcff"])
def test_without_a_font_the_code_point_is_spelled(text, monkeypatch):
    monkeypatch.setattr(
        drawing, "_font_with", lambda wanted: None if not wanted <= glyphs(drawing.REGULAR) else drawing.REGULAR
    )
    line, font = drawable(f"a {text}")
    assert line.startswith("a \\")
    assert set(line) <= glyphs(font)
    expected = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)
    assert line == f"a {expected}"
    assert drawable("Ａ 猫")[0] == "A \\u732b", "compatibility characters lose their dress"


def test_a_system_font_is_used_where_it_has_the_glyph(monkeypatch):
    font = Path(mpl.get_data_path(), "fonts", "ttf", "STIXGeneral.ttf")
    monkeypatch.setattr(drawing, "system_fonts", lambda: (drawing.REGULAR, font))
    text = f"a {max(glyphs(font) - glyphs(drawing.REGULAR))}"
    assert drawable(text) == (text, font)
    assert drawable("ab") == ("ab", drawing.BOLD)


def test_damaged_fonts_draw_nothing_or_what_they_have(tmp_path):
    data = drawing.BOLD.read_bytes()
    for cut in (0, 3, 11, 40, 300, 5000, 60_000):
        (tmp_path / f"{cut}.ttf").write_bytes(data[:cut])
        assert not drawing.draws(tmp_path / f"{cut}.ttf", "猫")


def test_line_breaks_and_reordering_marks_do_not_reach_the_picture():
    assert drawable("a\nb\tc\u2028d")[0] == "a b c d"
    assert drawable("evil\u202egpj.cat")[0] == "evilgpj.cat"
    assert drawable("می\u200cخواهم")[0] == "می\u200cخواهم"


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=40), st.integers(0, 300))
def test_shortened_text_fits(text, width):
    short = shorten(text, 12, width)
    assert text_width(short, 12) <= width or short == ""
    line, _ = drawable(text)
    if short != line:
        assert text_width(line, 12) > width
        assert short == "" or (short.endswith("…") and line.startswith(short[:-1]))


def test_shortening_keeps_as_much_as_fits():
    text = "a rather long name of a class"
    short = shorten(text, 12, 100)
    longer = text[: len(short)] + "…"
    assert text_width(short, 12) <= 100 < text_width(longer, 12)


def test_an_overlay_is_a_thin_line_around_the_heat_the_heat_itself_or_nothing():
    ground, heatmap = np.full((120, 200, 3), 90, np.uint8), np.zeros((12, 20), np.float32)
    heatmap[4:8, 6:14] = 0.8  # pixels 60–140, 40–80
    found = Localization(0, 0.0, "cat", 0.9, None, 0.8, heatmap)
    label = label_of(found)
    bare, contour, heat = (draw_objects(ground, found, overlay=kind) for kind in ("box", "contour", "heat"))
    np.testing.assert_array_equal(bare, draw_localization(ground, None, None, label=label))
    np.testing.assert_array_equal(heat, draw_localization(ground, heatmap, None, label=label))
    np.testing.assert_array_equal(contour, draw_objects(ground, found))
    changed = (contour != bare).any(-1)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    assert [columns[0], rows[0], columns[-1], rows[-1]] == pytest.approx([60, 40, 140, 80], abs=8)
    assert not changed[52:68, 72:128].any()  # the inside stays visible
    assert changed.sum() < 0.4 * 80 * 40
    masked = replace(found, mask=heatmap.repeat(10, 0).repeat(10, 1) > 0, refined="MobileSAM")
    assert (draw_objects(ground, masked) != draw_objects(ground, masked, overlay="box")).any()
