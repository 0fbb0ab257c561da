"""Folders of tagged videos, and the split by video. Catalogues open no file, so empty ones do."""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.data.catalogue import read_catalogue
from colocam.errors import ColocamError
from colocam.video.images import natural_key


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def two_tags(root: Path, videos: int = 10) -> Path:
    return touch(root, *(f"{tag}/v{number}.mp4" for tag in ("dog", "cat") for number in range(videos)))


def test_a_folder_per_tag(tmp_path):
    catalogue = read_catalogue(two_tags(tmp_path))
    assert catalogue.tags == ("cat", "dog")
    assert [clip.name for clip in catalogue.clips[:3]] == ["cat/v0", "cat/v1", "cat/v2"]
    assert {(clip.tag, clip.path.parent.name, clip.video == clip.name) for clip in catalogue.clips} == {
        ("cat", "cat", True),
        ("dog", "dog", True),
    }
    assert all(clip.frames == () and clip.start == 0 and clip.end is None for clip in catalogue.clips)


def test_the_split_is_by_share_and_tag(tmp_path):
    catalogue = read_catalogue(two_tags(tmp_path / "many"), val_fraction=0.3)
    counts = {(tag, split): count for tag in ("cat", "dog") for split, count in (("train", 7), ("val", 3))}
    assert Counter((clip.tag, clip.split) for clip in catalogue.clips) == counts
    assert (len(catalogue.of("train")), len(catalogue.of("val")), catalogue.of("test")) == (14, 6, ())
    for val_fraction in (0.01, 0.99):  # each split has a video of each tag
        few = read_catalogue(two_tags(tmp_path / "few", videos=2), val_fraction=val_fraction)
        assert [len(few.of(split)) for split in ("train", "val")] == [2, 2]


def test_the_seed_decides_the_split(tmp_path):
    two_tags(tmp_path)
    first, again, other = (read_catalogue(tmp_path, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert {clip.name for clip in first.of("val")} != {clip.name for clip in other.of("val")}


@pytest.mark.parametrize("val_fraction", [0.0, 1.0, -0.1, float("nan")])
def test_impossible_share(tmp_path, val_fraction):
    with pytest.raises(ColocamError, match="val_fraction"):
        read_catalogue(two_tags(tmp_path), val_fraction=val_fraction)


@given(st.lists(st.text("aB0019é٣²猫.", max_size=8), unique=True), st.randoms(use_true_random=False))
def test_natural_key_is_a_total_order(names, random):
    shuffled = random.sample(names, len(names))
    assert sorted(names, key=natural_key) == sorted(shuffled, key=natural_key)
    assert len({natural_key(name) for name in names}) == len(names)


def test_folders_of_pictures_and_of_shots(tmp_path):
    touch(tmp_path, "cat/a.mp4", "cat/b/1.jpg", "cat/b/2.PNG", "cat/b/notes.txt", "cat/b/.hidden.jpg")
    touch(
        tmp_path, "dog/v1/shot-2/1.jpg", "dog/v1/shot-10/1.jpg", "dog/v1/whole.mp4", "dog/v2/shot-1/1.jpg", "dog/v3/x"
    )
    clips = {clip.name: clip for clip in read_catalogue(tmp_path).clips}
    assert list(clips) == [
        *("cat/a", "cat/b", "dog/v1/shot-2", "dog/v1/shot-10", "dog/v1/whole"),
        *("dog/v2/shot-1", "dog/v3/x"),
    ]
    assert clips["cat/b"].frames == (tmp_path / "cat/b/1.jpg", tmp_path / "cat/b/2.PNG")
    assert clips["cat/b"].path == tmp_path / "cat/b"
    assert clips["dog/v1/shot-10"].frames == (tmp_path / "dog/v1/shot-10/1.jpg",)
    assert {clip.video for clip in clips.values() if clip.name.startswith("dog/v1/")} == {"dog/v1"}


@pytest.mark.parametrize("seed", range(8))
def test_shots_of_one_video_stay_together(tmp_path, seed):
    """So do two files of one name."""
    touch(tmp_path, *(f"{tag}/v{v}/shot{s}.mp4" for tag in ("cat", "dog") for v in range(3) for s in range(4)))
    touch(tmp_path, "cat/w.mp4", "cat/w.webm")
    clips = read_catalogue(tmp_path, seed=seed).clips
    assert len({(clip.video, clip.split) for clip in clips}) == 7
    assert [clip.name for clip in clips if clip.video == "cat/w"] == ["cat/w.mp4", "cat/w.webm"]


def test_other_files_are_ignored_and_unknown_suffixes_are_candidates(tmp_path):
    two_tags(tmp_path, videos=2)
    touch(tmp_path, "readme.md", ".git/config", "cat/.DS_Store", "cat/v0.srt", "cat/v0.json", "cat/poster.JPG")
    touch(tmp_path, "cat/notes.TXT", "cat/video", "cat/odd.xyz", "cat/moving.gif")
    (tmp_path / "cat/dangling.mp4").symlink_to(tmp_path / "nowhere.mp4")
    (tmp_path / "cat/LICENSE").write_text("ü" * 600)
    (tmp_path / "cat/stream").write_bytes(b"text\xff\xfe")
    names = {clip.name for clip in read_catalogue(tmp_path).clips if clip.tag == "cat"}
    assert names == {"cat/stream", "cat/v0", "cat/v1", "cat/video", "cat/odd", "cat/moving"}


def test_only_files_are_videos(tmp_path, capsys):
    """A link in a circle, a broken link and a pipe cost one line each, also where folders are expected."""
    root = two_tags(tmp_path, 2)
    for link in (root / "loop", root / "cat" / "loop.mp4", root / "cat" / "v9.mp4"):
        link.symlink_to(link.name.replace("v9", "gone"))
    os.mkfifo(root / "dog" / "pipe.mp4")
    (root / "dog" / "linked.mp4").symlink_to("v0.mp4")
    touch(root / "dog" / "frames", "1.jpg")
    (root / "dog" / "frames" / "2.jpg").symlink_to("2.jpg")
    clips = read_catalogue(root).clips
    assert [clip.name for clip in clips] == ["cat/v0", "cat/v1", "dog/frames", "dog/linked", "dog/v0", "dog/v1"]
    assert [path.name for path in clips[2].frames] == ["1.jpg"]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        f"skipped {root / name}" for name in ("cat/loop.mp4", "cat/v9.mp4", "dog/pipe.mp4")
    ]


def test_names_with_thousands_of_digits_have_an_order():
    names = ["a" + "9" * 5000, "a" + "0" * 6000 + "1", "a12", "a1" + "0" * 5000]
    assert sorted(names, key=natural_key) == [names[1], names[2], names[0], names[3]]


def splits(catalogue):
    return {split: [clip.name for clip in catalogue.of(split)] for split in ("train", "val", "test")}


def test_folders_may_be_splits(tmp_path):
    touch(tmp_path, *(f"{split}/{tag}/v.mp4" for split in ("train", "validation", "test") for tag in ("cat", "dog")))
    catalogue = read_catalogue(tmp_path)
    assert catalogue.tags == ("cat", "dog")
    assert splits(catalogue) == {
        split: [f"{folder}/{tag}/v" for tag in ("cat", "dog")]
        for split, folder in (("train", "train"), ("val", "validation"), ("test", "test"))
    }


def test_test_videos_beside_the_tags(tmp_path):
    """The layout of the README: VIDEOS/<tag>/ and VIDEOS/test/<tag>/."""
    two_tags(tmp_path)
    alone = splits(read_catalogue(tmp_path))
    touch(tmp_path, "test/cat/v0.mp4", "test/dog/x/1.jpg", "test/notes.txt")
    catalogue = read_catalogue(tmp_path)
    assert catalogue.tags == ("cat", "dog")
    assert splits(catalogue) == {**alone, "test": ["test/cat/v0", "test/dog/x"]}
    assert {clip.tag for clip in catalogue.of("test")} == {"cat", "dog"}
    touch(tmp_path, "Val/cat/w.mp4")  # leaves the others for training
    assert splits(read_catalogue(tmp_path)) == {
        "train": [f"{tag}/v{number}" for tag in ("cat", "dog") for number in range(10)],
        "val": ["Val/cat/w"],
        "test": ["test/cat/v0", "test/dog/x"],
    }


def test_splits_without_validation_videos(tmp_path):
    touch(tmp_path, *(f"train/{tag}/v{number}.mp4" for tag in ("cat", "dog") for number in range(5)))
    touch(tmp_path, "test/cat/v0.mp4")
    catalogue = read_catalogue(tmp_path)
    assert catalogue.tags == ("cat", "dog")
    assert Counter((clip.tag, clip.split) for clip in catalogue.clips) == {
        **{(tag, "train"): 4 for tag in ("cat", "dog")},
        **{(tag, "val"): 1 for tag in ("cat", "dog")},
        ("cat", "test"): 1,
    }


@pytest.mark.parametrize("tag", ["train", "test", "Valid"])
def test_a_tag_with_the_name_of_a_split(tmp_path, capsys, tag):
    """It holds videos, not folders of tags, and a line says how it is read."""
    touch(tmp_path, *(f"{name}/{video}.mp4" for name in (tag, "bus") for video in "ab"), f"{tag}/c/1.jpg")
    catalogue = read_catalogue(tmp_path)
    assert set(catalogue.tags) == {"bus", tag}
    assert catalogue.of("test") == ()
    assert len(catalogue.clips) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path / tag} is read as a tag" in line


def test_videos_beside_the_tags_of_a_split_are_named(tmp_path, capsys):
    touch(two_tags(tmp_path, videos=2), "test/cat/w.mp4", "test/lost1.mp4", "test/lost2.mp4")
    assert splits(read_catalogue(tmp_path))["test"] == ["test/cat/w"]
    (line,) = capsys.readouterr().err.splitlines()
    assert f"skipped {tmp_path / 'test/lost1.mp4'} and 1 more" in line


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no folder of videos"),
        (["a.mp4", "b.mp4"], "no folder of videos"),
        (["cat/a.mp4", "cat/b.mp4"], "the only tag is 'cat'"),
        (["cat/a.mp4", "cat/b.mp4", "dog/only one.mp4"], r"'dog' has a single video \(dog/only one\)"),
        (["cat/a.mp4", "cat/b.mp4", "dog/s/1.mp4", "dog/s/2.mp4"], r"'dog' has a single video \(dog/s\)"),
        (["cat/a.mp4", "cat/b.mp4", "dog/notes.txt"], "dog contains no video"),
        (["cat/a.mp4", "cat/b.mp4", "dog/1.jpg", "dog/2.jpg"], "one folder per video"),
        (["train/cat/a.mp4", "val/cat/a.mp4"], "the only tag is 'cat'"),
        (["cat/a.mp4", "dog/a.mp4", "test/bird/a.mp4"], r"test: .* bird, .* tags are cat and dog.* a table"),
        (["cat/a.mp4", "dog/a.mp4", "test/cat/a.mp4", "test/Dog/a.mp4"], r"test: .* Dog, .* tags are cat and dog"),
        (["train/cat/a.mp4", "train/dog/a.mp4", "test/bird/a.mp4"], r"test: .* bird, .* tags are cat and dog"),
        (["cat/a.mp4", "dog/a.mp4", "train/0001/shot.mp4"], r"train: .* 0001, .* tags are cat and dog"),
        (["val/cat/a.mp4", "test/cat/a.mp4"], "test and val are splits, but there is no folder train"),
        (["train/a.mp4", "test/cat/b.mp4"], "no tag has a folder in train: put the videos into VIDEOS/train/<tag>/"),
        (["train/a.mp4", "test/b.mp4"], "test: it has no folder named after a tag"),
        (["cat/a.mp4", "dog/a.mp4", "test/notes.txt"], "test contains no video"),
    ],
)
def test_folders_without_enough(tmp_path, names, message):
    with pytest.raises(ColocamError, match=message) as raised:
        read_catalogue(touch(tmp_path, *names))
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(ColocamError, match=r"cannot read the folder .*Permission denied"):
        read_catalogue(tmp_path)
