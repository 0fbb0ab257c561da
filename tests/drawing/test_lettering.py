import unicodedata
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.ft2font import FT2Font

from colocam.drawing import lettering
from colocam.drawing.lettering import drawable, line_height, shorten, text_mask, text_width


def glyphs(font):
    return {chr(code) for code in FT2Font(str(font)).get_charmap()}


@pytest.mark.parametrize("text", ["cat", "кошка", "γάτα", "Katze äöüß", "قطة", "חתול", "naïve café"])
def test_scripts_of_dejavu_are_drawn_as_they_are(text):
    line, font = drawable(text)
    assert line == text
    assert font.name.startswith("DejaVuSans")


@pytest.mark.parametrize("text", ["猫", "ねこ", "고양이", "\U0001f408", "\ue000", "\udcff"])
def test_without_a_font_the_code_point_is_spelt(text, monkeypatch):
    monkeypatch.setattr(
        lettering, "_font_with", lambda wanted: None if not wanted <= glyphs(lettering.REGULAR) else lettering.REGULAR
    )
    line, font = drawable(f"a {text}")
    assert line.startswith("a \\")
    assert set(line) <= glyphs(font)
    expected = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)
    assert line == f"a {expected}"


def test_compatibility_characters_lose_their_dress():
    assert lettering._spell("Ａ") == "A"
    assert lettering._spell("カ") == "\\u30ab"
    assert lettering._spell("x") == "x"


def test_a_system_font_is_used_where_it_has_the_glyph(monkeypatch, tmp_path):
    missing = "猫"
    fonts = {
        lettering.BOLD: frozenset("ab "),
        lettering.REGULAR: frozenset("ab "),
        tmp_path / "cjk.ttf": frozenset("ab 猫"),
    }
    monkeypatch.setattr(lettering, "draws", lambda font, one: one in fonts.get(font, ""))
    monkeypatch.setattr(lettering, "system_fonts", lambda: (tmp_path / "other.ttf", tmp_path / "cjk.ttf"))
    lettering._font_with.cache_clear()
    try:
        assert drawable(f"a {missing}") == (f"a {missing}", tmp_path / "cjk.ttf")
        assert drawable("ab") == ("ab", lettering.BOLD)
    finally:
        lettering._font_with.cache_clear()


def test_what_a_font_draws_is_what_freetype_reads():
    """Fonts of matplotlib: with segments, with offsets into the glyph table, and with code points above 16 bits."""
    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    some = [chr(code) for code in (*range(33, 0x30000, 97), *range(0x300, 0x370), 0xD812, 0xE000)]
    plain = [one for one in some if not one.isspace() and unicodedata.category(one) != "Cf"]
    for font in (lettering.REGULAR, folder / "STIXGeneral.ttf"):
        assert {one for one in plain if lettering.draws(font, one)} == glyphs(font) & set(plain)


def test_damaged_fonts_draw_nothing_or_what_they_have(tmp_path):
    data = lettering.BOLD.read_bytes()
    for cut in (0, 3, 11, 40, 300, 5000, 60_000):
        (tmp_path / f"{cut}.ttf").write_bytes(data[:cut])
        assert not lettering.draws(tmp_path / f"{cut}.ttf", "猫")


def test_fonts_that_only_pretend_are_left_out():
    names = [path.name for path in lettering.system_fonts()]
    assert not [name for name in names if "LastResort" in name or "Emoji" in name]


def test_line_breaks_and_reordering_marks_do_not_reach_the_picture():
    assert drawable("a\nb\tc\u2028d")[0] == "a b c d"
    assert drawable("evil\u202egpj.cat")[0] == "evilgpj.cat"
    assert drawable("می\u200cخواهم")[0] == "می\u200cخواهم"


def test_mask_has_the_stated_size_and_ink_inside():
    for size in (10, 14, 30):
        mask = text_mask("Ågjp кошка", size)
        assert mask.shape == (line_height(size), text_width("Ågjp кошка", size))
        assert mask.dtype == np.uint8
        assert mask.max() > 200
        assert (mask > 0).mean() > 0.1


def test_different_letters_have_different_ink():
    assert not np.array_equal(text_mask("кот", 20), text_mask("ток", 20))
    assert text_mask("", 20).max() == 0


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


def test_a_line_drawn_again_is_the_same_and_cannot_be_written_on():
    mask = text_mask("cat 93 %", 14)
    assert text_mask("cat 93 %", 14) is mask
    assert mask.max() == 255
    with pytest.raises(ValueError, match="read-only"):
        mask[:] = 0
