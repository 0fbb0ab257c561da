"""Videos of a catalogue, and their shards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.inference.videos import Shard, Video, parse_shard, read_videos
from colocam.video.input import VideoInput


def names(videos):
    return [video.name for video in videos]


def test_a_folder_without_its_labels(tmp_path):
    for name in ("b/2.mp4", "b/10.mp4", "a.mp4", "labels/parts/ab/x.parquet", ".hidden.mp4", "images/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    videos = read_videos(tmp_path, tmp_path / "labels")
    assert names(videos) == ["a.mp4", "b/2.mp4", "b/10.mp4", "images"]
    assert videos[1].path == tmp_path / "b" / "2.mp4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path\na.mp4\na.mp4\n", "row 2: path 'a.mp4' is listed twice"),
        ("path,tag\n,cat\n", "row 2: path is empty"),
        ("path\na\0b.mp4\n", "row 2: path has a NUL character"),
        ("path\n", "no rows"),
        ("video\na.mp4\n", "path"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, message):
    table = tmp_path / "videos.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(ColocamError, match=message):
        read_videos(table, tmp_path / "labels")


@given(st.sets(st.text(min_size=1), max_size=30), st.integers(1, 5))
def test_each_video_is_in_one_shard(given_names, count):
    videos = [Video(VideoInput(name), name) for name in sorted(given_names)]
    shards = [list(filter(Shard(index, count).has, videos)) for index in range(1, count + 1)]
    assert sorted(name for shard in shards for name in names(shard)) == sorted(given_names)


def test_shards_are_about_equal():
    videos = [Video(VideoInput("video.mp4"), f"recordings/{index}.mp4") for index in range(1000)]
    assert all(80 < len(list(filter(Shard(index, 10).has, videos))) < 120 for index in range(1, 11))


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/2/3", "a/b", "-1/2", ""])
def test_wrong_shards(text):
    with pytest.raises(ColocamError, match="shard must be I/N"):
        parse_shard(text)


def test_shard():
    assert parse_shard("3/8") == Shard(3, 8)
