"""Whole miniature archives, as distributed and converted."""

import shutil

import numpy as np
import pytest
from scipy.io import savemat

from colocam.data.truth import count
from colocam.data.youtube_objects import PUBLISHED, read_archive
from colocam.errors import ColocamError
from tests.helpers import youtube_archives as archives


def boxes_of(archive, clip):
    """Picture names and boxes of a clip's labeled frames."""
    (found,) = [c for c in archive.clips if c.name == clip]
    return {found.frames[place].name: boxes for place, boxes in archive.truth.frames[clip].items()}


def refused(told, *arguments, **options):
    with pytest.raises(ColocamError, match=told):
        read_archive(*arguments, **options)


def clips_of(archive, split):
    return {clip.name: [frame.name for frame in clip.frames] for clip in archive.clips if clip.split == split}


# version 1.0


def test_v1_splits(v1):
    archive = read_archive(v1, version="1.0")
    # 7 training videos a class, of which 5 validate; cat/0001 and horse/0001 have a second shot
    counts = count(archive)
    assert (counts["train videos"], counts["val videos"], counts["test videos"]) == (4, 10, 4)
    assert (counts["val frames"], counts["val boxes"]) == (10, 10)
    assert (counts["test frames"], counts["test boxes"]) == (6, 7)
    assert set(clips_of(archive, "test")) == {
        *(f"{tag}/{number}/001" for tag in ("cat", "horse") for number in ("0003", "0004")),
        *("cat/0003/010", "horse/0004/055"),
    }
    assert archive.summary == "YouTube-Objects v1.0, as distributed; validation videos sampled with seed 0"
    for clip, frames in clips_of(archive, "train").items():
        numbers = (1,) if clip.endswith("003") else (1, 2, 10)
        assert frames == [f"frame{number:04d}.jpg" for number in numbers]
    for clip, frames in (clips_of(archive, "val") | clips_of(archive, "test")).items():
        assert list(boxes_of(archive, clip)) == frames  # labeled frames alone


def test_v1_oddities(v1):
    archive = read_archive(v1, version="1.0")
    assert boxes_of(archive, "horse/0004/055") == {"frame0020.jpg": [(4.5, 5, 20.5, 18)]}
    assert boxes_of(archive, "cat/0003/010") == {"frame0007.jpg": [(0, 0, 10, 12), (3, 4, 31, 23)]}
    assert boxes_of(archive, "cat/0004/001") == {"frame0002.jpg": [(4, 5, 20, 18)]}  # from 0, as it is
    notes = "\n".join(archive.notes)
    assert "18 empty shot folders left out" in notes
    assert f"1 boxes with swapped corners put in order (first: {v1}/horse/data/0004/shots/055/frame0020.jpg)" in notes
    assert "1 boxes with negative corners clipped to 0" in notes
    assert "1 boxes that pass the right or bottom edge clipped" in notes
    assert "8 classes missing (first: aeroplane)" in notes


def test_v1_validation_from_lists(v1, tmp_path):
    """The lists of the literature name videos by the paths of either layout; only the videos count."""
    paths = ["cat/data/0001/shots/001/frame0002.jpg", "horse/video-0002/shot-000000/00000001.jpg"]
    paths += ["dog/data/0007/shots/001/frame0002.jpg", "cat/data/0004/shots/001/frame0002.jpg"]
    archives.lists(tmp_path / "lists" / "val", paths)
    for lists in (tmp_path / "lists", tmp_path / "lists" / "val"):
        archive = read_archive(v1, version="1.0", lists=lists)
        assert set(clips_of(archive, "val")) == {"cat/0001/001", "horse/0002/001"}
        assert archive.summary.endswith("validation videos from the list")
    assert len(clips_of(archive, "test")) == 6
    notes = "\n".join(archive.notes)
    assert "1 videos of the validation list that are not there (first: dog, 7)" in notes
    assert "1 videos of the validation list that are test videos and stay in test (first: cat/0004)" in notes


@pytest.fixture
def own_v1(tmp_path):
    return archives.v1(tmp_path / "archive", tags=("cat",), train=3)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("sets/test.txt", r"cannot read .*sets/test\.txt: the official split is expected there"),
        ("data/0001/shots", r"there is no folder .*data/0001/shots: unpack the archive"),
    ],
)
def test_v1_missing_parts(own_v1, broken, told):
    path = own_v1 / "cat" / broken
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    refused(told, own_v1, version="1.0")


def test_v1_lists_that_contradict_the_folders(own_v1):
    sets = own_v1 / "cat" / "sets"
    (sets / "train.txt").write_text("0001\n0099\n")
    notes = "\n".join(read_archive(own_v1, version="1.0").notes)
    assert "1 videos of the official split without a folder (first: cat/0099)" in notes
    assert "videos left out, which are in neither train.txt nor test.txt" in notes
    (sets / "train.txt").write_text("0001\n0003\n")
    refused(r"the video 0003 is in both train\.txt and test\.txt", own_v1, version="1.0")
    (sets / "train.txt").write_text("first\n")
    refused("'first' is not a video number", own_v1, version="1.0")


def test_v1_labels_that_cannot_be_used(own_v1):
    shot = own_v1 / "cat" / "data" / "0003" / "shots" / "001"
    archives.sticks(shot / "frame0099.jpg", archives.BOX)
    archives.sticks(shot / "frame0001.jpg")
    archives.sticks(archives.picture(shot / "frame0010.jpg"), archives.BOX)
    (shot / "frame0010.jpg").write_bytes(b"no picture")
    archive = read_archive(own_v1, version="1.0")
    assert list(boxes_of(archive, "cat/0003/001")) == ["frame0002.jpg"]
    notes = "\n".join(archive.notes)
    assert "1 labels left out, whose frame is missing" in notes
    assert "1 labels without a box left out" in notes
    assert "1 labeled frames left out, which are no readable image" in notes


def test_v1_a_broken_label_is_named(own_v1):
    label = own_v1 / "cat" / "data" / "0003" / "shots" / "001" / "frame0002.jpg_sticks.mat"
    savemat(label, {"coor": np.ones((3, 3))})
    refused(rf"{label}, variable coor: boxes must be rows", own_v1, version="1.0")


# version 2.2


@pytest.mark.parametrize("columns", [True, False])
def test_v2_shots(tmp_path, columns):
    archive = read_archive(archives.v2(tmp_path, columns=columns), version="2.2")
    counts = count(archive)
    # of videos 1, 2, 3, 6 (with boxes) and 7 three validate, always with boxes; 4 and 5 are test
    assert (counts["train videos"], counts["val videos"], counts["test videos"]) == (4, 6, 4)
    assert clips_of(archive, "test") == {
        name: frames
        for tag in ("cat", "train")
        for name, frames in (
            (f"{tag}/video-0004/shot-000004", ["00000016.jpg", "00000018.jpg"]),
            (f"{tag}/video-0005/shot-000005", ["00000020.jpg"]),
        )
    }
    assert clips_of(archive, "train")["cat/video-0007/shot-000007"] == ["00000030.jpg", "00000031.jpg"]
    assert {clip.path for clip in archive.clips} == {tmp_path / "cat", tmp_path / "train"}


def test_v2_unpacked_into_folders_of_their_own_names(v2, tmp_path):
    """As the archives unpack where each is given a folder: ``GroundTruth/GroundTruth`` and ``Ranges/Ranges``."""
    root = tmp_path / "nested"
    shutil.copytree(v2, root)
    for name in ("GroundTruth", "Ranges"):
        (root / name).rename(root / "moved")
        (root / name).mkdir()
        (root / "moved").rename(root / name / name)
    nested, plain = (read_archive(folder, version="2.2") for folder in (root, v2))
    assert nested.truth == plain.truth
    assert [(clip.name, clip.split) for clip in nested.clips] == [(clip.name, clip.split) for clip in plain.clips]


def test_v2_boxes_count_from_one_and_frames_may_be_missing(v2):
    archive = read_archive(v2, version="2.2")
    assert boxes_of(archive, "cat/video-0004/shot-000004") == {
        "00000016.jpg": [(3, 4, 19, 17), (0, 0, 31, 23)],
        "00000018.jpg": [(0, 2, 31, 23)],
    }
    notes = "\n".join(archive.notes)
    assert "2 boxes with negative corners clipped to 0" in notes
    assert "2 boxes that pass the right or bottom edge clipped" in notes
    assert "2 shots with missing frames (first: cat/video-0001/shot-000001, 2 of 3 are there)" in notes


def test_v2_three_shots_either_way(tmp_path):
    """A matrix of 3×3 does not say by its shape what its rows are."""
    root = archives.v2(tmp_path, tags=("cat",))
    three = np.array([(1, 6, 1), (10, 15, 2), (16, 31, 4)])
    found = []
    for ranges in (three, three.T):
        savemat(root / "Ranges" / "ranges_cat.mat", {"ranges": ranges})
        found.append({(c.name, c.split) for c in read_archive(root, version="2.2").clips})
    assert found[0] == found[1]
    assert ("cat/video-0004/shot-000002", "test") in found[0]


def test_v2_labels_that_fit_nothing(tmp_path):
    root = archives.v2(tmp_path, tags=("cat",))
    archives.picture(root / "cat" / "00000008.jpg")  # in no shot
    labels = {"cat00000008": [archives.BOX], "cat00000099": [archives.BOX], "cat00000016": [archives.BOX]}
    truth = root / "GroundTruth" / "cat"
    savemat(truth / "bb_gtTraining_cat.mat", {"bb_gtTraining": archives.struct(labels)})
    notes = "\n".join(read_archive(root, version="2.2").notes)
    assert "1 labels left out, whose frame is missing (first: cat/00000099)" in notes
    assert f"1 labels left out, whose frame is in no shot (first: {root / 'cat' / '00000008.jpg'})" in notes
    assert "1 shots of test videos with training labels, which are left out" in notes


@pytest.mark.parametrize("name", ["ranges_cat.mat", "bb_gtTest_cat.mat", "bb_gtTraining_cat.mat"])
def test_v2_missing_files(tmp_path, name):
    root = archives.v2(tmp_path, tags=("cat",))
    next(root.rglob(name)).unlink()
    refused(f"cannot read .*{name}: there is no such file", root, version="2.2")


@pytest.mark.parametrize(
    ("ranges", "told"),
    [(np.ones((2, 5)), "expected start, end and video"), (np.array([[5], [3], [1]]), "a shot ends before it starts")],
)
def test_v2_broken_ranges(tmp_path, ranges, told):
    root = archives.v2(tmp_path, tags=("cat",))
    savemat(root / "Ranges" / "ranges_cat.mat", {"ranges": ranges})
    refused(rf"ranges_cat\.mat, variable ranges: {told}", root, version="2.2")


# frames in folders, with split lists


@pytest.fixture
def converted(tmp_path):
    return archives.converted(tmp_path / "frames", tmp_path / "lists")


def test_converted(converted, tmp_path):
    archive = read_archive(converted, version="2.2", lists=tmp_path / "lists")
    counts = count(archive)
    assert [counts[name] for name in PUBLISHED["2.2"]] == [2, 2, 4, 4, 2, 4, 6, 2]
    assert clips_of(archive, "train")["cat/video-0001/shot-000001"] == ["00001139.jpg", "00001140.jpg", "00001200.jpg"]
    assert clips_of(archive, "val")["train/video-0002/shot-000002"] == ["00001139.jpg", "00001140.jpg"]
    assert boxes_of(archive, "cat/video-0003/shot-000003") == {
        "00001139.jpg": [(4, 5, 20, 18)],
        "00001140.jpg": [(4, 5, 20, 18), (0, 0, 31, 23)],
    }
    assert {clip.tag for clip in archive.clips} == {"cat", "train"}
    assert archive.summary.endswith("validation videos from the list")


@pytest.mark.parametrize("inside", [".", "lists", "folds/v2.2"])
def test_lists_below_the_root_are_found(tmp_path, inside):
    """Even beside the frames, where the class train and the split train share a folder."""
    root = tmp_path / "frames"
    archives.converted(root, tmp_path / "lists")
    (root / inside).mkdir(parents=True, exist_ok=True)
    shutil.copytree(tmp_path / "lists", root / inside, dirs_exist_ok=True)
    assert count(read_archive(root, version="2.2"))["test boxes"] == 6


def test_v1_frames_with_lists_alone(v1, tmp_path):
    root = tmp_path / "frames"
    shutil.copytree(v1, root)
    for tag in ("cat", "horse"):
        shutil.rmtree(root / tag / "sets")
    shot = "cat/data/0001/shots/001"
    archives.lists(tmp_path / "lists" / "train", [shot, "cat/data/0001/shots/002"], [f"{shot},4"])
    for split, video in (("val", "0002"), ("test", "0003")):
        frame = f"horse/data/{video}/shots/001/frame0002.jpg"
        archives.lists(tmp_path / "lists" / split, [frame], [f"{frame},7"], [f"{frame},64,48"], [f"{frame},8,10,40,36"])
    archive = read_archive(root, version="1.0", lists=tmp_path / "lists")
    assert [(clip.name, clip.split) for clip in archive.clips] == [
        *(("cat/0001/001", "train"), ("horse/0002/001", "val"), ("horse/0003/001", "test")),
    ]
    assert boxes_of(archive, "horse/0003/001") == {"frame0002.jpg": [(4, 5, 20, 18)]}  # of a frame twice as large
    assert any("empty shot folders" in note for note in archive.notes)


def test_listed_frames_that_are_missing(converted, tmp_path):
    (converted / "cat" / "video-0003" / "shot-000003" / "00001140.jpg").unlink()
    archive = read_archive(converted, version="2.2", lists=tmp_path / "lists")
    assert count(archive)["test boxes"] == 6 - 2
    assert any(note.startswith("1 listed paths of test left out, which do not exist") for note in archive.notes)
    refused("none of the listed paths is below", tmp_path, version="2.2", lists=tmp_path / "lists")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "class_labels.txt",
            "cat/video-0003/shot-000003/00001139.jpg,12\n",
            "the class '12' is not a number from 0 to 9",
        ),
        ("class_labels.txt", "", "cat/video-0003/shot-000003 is labeled nowhere, not as cat"),
        ("class_labels.txt", "cat/video-0003/shot-000003/00001139.jpg,3\n", "is labeled as car, not as cat"),
        ("localization.txt", "cat/x.jpg,1,2,3\n", "line 1: 5 cells are needed"),
        ("localization.txt", "cat/x.jpg,1,2,3,four\n", "'1,2,3,four' are not all numbers"),
        ("localization.txt", None, "cannot read the split list"),
    ],
)
def test_broken_lists(converted, tmp_path, name, text, told):
    path = tmp_path / "lists" / "test" / name
    path.unlink() if text is None else path.write_text(text)
    refused(told, converted, version="2.2", lists=tmp_path / "lists")


# what is no archive


def test_what_cannot_be_read(v1, v2, tmp_path):
    refused(r"version must be one of 1\.0, 2\.2, got 3", v1, version="3")
    refused(r"not version 1\.0 .* but the other one: change `version`", v2, version="1.0")
    refused(r"not version 2\.2 .* but the other one: change `version`", v1, version="2.2")
    refused(r"neither version 2\.2 as distributed .* nor frames with split lists", tmp_path, version="2.2")
    refused("there is no such folder", tmp_path / "no", version="2.2")
    refused("there is no such folder of split lists", v1, version="1.0", lists=tmp_path / "no")
    refused(r"no validation list; expected .*val/image_ids\.txt", v1, version="1.0", lists=tmp_path)
    (tmp_path / "Ranges").mkdir()
    refused("none of its class folders has a frame", tmp_path, version="2.2")
