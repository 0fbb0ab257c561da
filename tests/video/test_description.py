"""What lies beside a table about its video."""

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from colocam.errors import ColocamError
from colocam.video.description import describe, read_source, source_path, write_source
from colocam.video.fence import probe, probe_source
from colocam.video.reader import VideoInfo


def read(info, count):
    """A video that was read to its end."""
    return SimpleNamespace(info=info, count=count, ended=True, pictures=())


def test_a_description_comes_back(tmp_path):
    for info in (VideoInfo(97, 71, Fraction(30000, 1001), 12.5), VideoInfo(97, 71, None, None)):
        source = describe(tmp_path / "ein Video 猫.mp4", read(info, 300))
        path = write_source(tmp_path / "table.csv", source)
        assert path == source_path(tmp_path / "table.parquet") == tmp_path / "table.video.json"
        assert read_source(tmp_path / "table.parquet") == source
    assert (source.fps, source.duration) == (25, 12)
    assert source.file == "ein Video 猫.mp4"


def test_paths_are_absolute_and_names_utf8(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = describe(Path("caf\udce9.mp4"), read(VideoInfo(2, 2, None, None), 1))
    assert source.path == tmp_path / "caf\udce9.mp4"
    assert source.file == "caf\\udce9.mp4"
    card = json.loads(write_source(Path("a.csv"), source).read_text(encoding="utf-8"))
    assert card["path"] == f"{tmp_path}/caf\\udce9.mp4"


def test_a_video_is_counted_not_believed(tmp_path, make_video):
    """A header of variable rate promises 41 frames here."""
    times = [0.5, 0.6, 0.62, 1.5, 1.6]
    path = make_video(tmp_path / "a.mkv", 5, (50, 38), times=times)
    source = probe_source(path)
    assert (source.width, source.height, source.frames) == (50, 38, 5)
    assert source.fps == probe(path).fps


@pytest.mark.parametrize(
    "values",
    [
        *({name: value} for name in ("width", "height", "frames") for value in ("1e999", "1" + "0" * 400, "NaN", "-1")),
        *({"fps": value} for value in ("1e999", '"1e999999999"', "NaN", "Infinity", '"25/0"', '"0"')),
        *({"duration": value} for value in ("1e999", "NaN", "-Infinity", "1" + "0" * 400)),
        {"pictures": r'["a\u0000.jpg"]', "frames": "1"},
        {"pictures": r'["\ud800.jpg"]', "frames": "1"},
        {"path": r'"a\u0000.mp4"'},
        {"path": "[" * 100_000},
    ],
)
def test_values_without_sense_are_refused_in_one_line(tmp_path, values):
    sound = {"format": "1", "path": '"a.mp4"', "width": "8", "height": "8", "fps": '"25"', "frames": "3"}
    text = ", ".join(f'"{name}": {value}' for name, value in (sound | {"duration": "0.12"} | values).items())
    source_path(tmp_path / "a.csv").write_text(f"{{{text}}}", encoding="utf-8")
    with pytest.raises(ColocamError, match=r"a\.video\.json (does not describe a video|cannot be read)") as raised:
        read_source(tmp_path / "a.csv")
    assert "\n" not in str(raised.value)
