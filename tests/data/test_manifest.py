"""Collections as tables, and the reading of tables."""

import csv
from pathlib import Path

import pytest

from colocam.data.catalogue import read_catalogue
from colocam.errors import ColocamError

VIDEOS = ("a", 'it\'s, "猫" кошка')


def table(path: Path, rows: list[dict]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(folder: Path, **more) -> list[dict]:
    rows = []
    for tag in ("cat", "dog"):
        for video in VIDEOS:
            (folder / tag).mkdir(exist_ok=True)
            (folder / tag / f"{video}.mp4").touch()
            rows.append({"path": f"{tag}/{video}.mp4", "tag": tag, **more})
    return rows


def test_path_and_tag_are_enough(tmp_path):
    catalogue = read_catalogue(table(tmp_path / "m.csv", rows_of(tmp_path)))
    assert [(clip.name, clip.video, clip.tag) for clip in catalogue.clips] == [
        (f"{tag}/{video}", f"{tag}/{video}", tag) for tag in ("cat", "dog") for video in VIDEOS
    ]
    assert [clip.path for clip in catalogue.clips[:2]] == [tmp_path / "cat" / f"{video}.mp4" for video in VIDEOS]
    assert len(catalogue.of("train")) == len(catalogue.of("val")) == 2


def test_all_columns(tmp_path):
    rows = rows_of(tmp_path)
    for row, split in zip(rows, ("train", "VAL", "test", "test-public"), strict=True):
        row |= {"split": split, "clip": f"my {row['path']}", "video": f"tape {row['path']}", "start": "1.5", "end": "4"}
    clips = read_catalogue(table(tmp_path / "m.csv", rows)).clips
    assert [clip.split for clip in clips] == ["train", "val", "test", "test"]
    assert (clips[0].name, clips[0].video, clips[0].start, clips[0].end) == (
        *("my cat/a.mp4", "tape cat/a.mp4"),
        *(1.5, 4.0),
    )


@pytest.mark.parametrize("seed", range(6))
def test_clips_of_one_file_are_one_video(tmp_path, seed):
    rows = []
    for row in rows_of(tmp_path):
        rows += [row | {"start": start, "end": start + 5} for start in (0, 5, 10)]
    clips = read_catalogue(table(tmp_path / "m.csv", rows), seed=seed).clips
    assert [clip.name for clip in clips[:3]] == ["cat/a@0-5", "cat/a@5-10", "cat/a@10-15"]
    assert len({(clip.video, clip.split) for clip in clips}) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": "cat/gone.mp4"}, r"row 2: there is no file .*cat/gone\.mp4"),
        ({"path": ""}, "row 2: path and tag must not be empty"),
        ({"tag": ""}, "row 2: path and tag must not be empty"),
        ({"split": "trian"}, "row 2: split must be train, val or test, got 'trian'"),
        ({"split": ""}, "row 2: split must be train, val or test, got ''"),
        ({"start": "soon"}, "row 2: start is 'soon', which is not a number"),
        ({"end": "nan"}, "row 2: end is 'nan', which is not a number"),
        ({"start": "-1"}, "row 2: a clip needs 0 ≤ start < end"),
        ({"start": "3", "end": "3"}, "row 2: a clip needs 0 ≤ start < end"),
        ({"path": "cat"}, "row 2: there is no image in the folder"),
        ({"path": "pictures", "start": "1"}, "row 2: a folder of images has no times"),
        ({"clip": "same"}, "two clips are called 'same'"),
        ({"video": "dog/a", "split": "val"}, "the video 'dog/a' is in both val and train"),
    ],
)
def test_contradictions(tmp_path, change, message):
    rows = rows_of(tmp_path, split="train", start="", end="", clip="", video="")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/1.jpg").touch()
    rows[0] |= change
    rows[1] |= {"clip": "same"}
    with pytest.raises(ColocamError, match=message) as raised:
        read_catalogue(table(tmp_path / "m.csv", rows))
    assert "m.csv" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_tag_that_no_model_file_takes(tmp_path):
    rows = rows_of(tmp_path)
    rows[0]["tag"] = 1001 * "x"
    with pytest.raises(ColocamError, match=r"m.csv: a tag has 1001 characters, at most 1000: 'x{40}'…"):
        read_catalogue(table(tmp_path / "m.csv", rows))


def test_a_video_with_two_tags_is_never_torn_apart(tmp_path):
    rows = rows_of(tmp_path)[:2]
    both = [row | {"tag": tag, "clip": f"{tag} {row['path']}"} for row in rows for tag in ("cat", "pet")]
    manifest = table(tmp_path / "m.csv", both)
    clips = read_catalogue(manifest, seed=0).clips  # both tags draw the same video
    assert len({(clip.video, clip.split) for clip in clips}) == 2
    with pytest.raises(ColocamError, match=r"all videos of 'cat' .* name the splits in a manifest"):
        read_catalogue(manifest, seed=2)  # each draws another


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", b"", "no rows"),
        ("m.csv", b"path,tag\n", "no rows"),
        ("m.csv", b"file,label\na,b\n", "needs the columns path and tag.*its columns are file, label"),
        ("m.csv", b"frame,class,video\na,b,c\n", "needs the columns"),
        ("m.csv", b'path,tag\n"a,b\n', "not a CSV table"),
        ("m.parquet", b"path,tag\n", "not a parquet table"),
    ],
)
def test_tables_that_are_none(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ColocamError, match=message) as raised:
        read_catalogue(tmp_path / name)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)
