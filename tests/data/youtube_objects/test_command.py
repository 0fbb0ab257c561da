"""``colocam index``: what it prints and writes, and that training and evaluation accept the result."""

import shutil

import pytest

from colocam.data.catalogue import read_catalogue
from colocam.data.frame_cache import cache_frames
from colocam.data.truth import read_truth
from tests.helpers import youtube_archives as archives


def test_version_1(colocam, v1, tmp_path):
    outcome = colocam("index", "youtube-objects", v1, "--version", "1.0", "-o", tmp_path / "out", "--seed", 3)
    assert outcome.code == 0
    assert "YouTube-Objects v1.0, as distributed; validation videos sampled with seed 3" in outcome.out
    rows = {line.split("│")[1].strip(): line.split("│")[2:5] for line in outcome.out.splitlines() if "│" in line}
    assert [cell.strip() for cell in rows["test boxes"]] == ["7", "396", "DIFFERS"]
    assert [cell.strip() for cell in rows["train videos"]] == ["4", "78", "DIFFERS"]
    assert "warning: these counts DIFFER from the published ones: train shots, train videos, val frames" in outcome.err
    assert "note: 1 boxes with swapped corners put in order" in outcome.err
    assert f"wrote {tmp_path}/out/manifest.csv and {tmp_path}/out/truth.csv" in outcome.err
    assert read_truth(tmp_path / "out" / "truth.csv").boxes("horse/0004/055", 0) == [(4.5, 5, 20.5, 18)]


def test_version_2(colocam, v2, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert colocam("index", "youtube-objects", v2, "--version", "2.2").code == 0
    out = tmp_path / "youtube-objects-2.2"
    assert read_truth(out / "truth.csv").boxes("cat/video-0004/shot-000004", 1) == [(0, 2, 31, 23)]
    catalogue = read_catalogue(out / "manifest.csv")
    train = {clip.name: [frame.name for frame in clip.frames] for clip in catalogue.of("train")}
    assert train["train/video-0007/shot-000007"] == ["00000030.jpg", "00000031.jpg"]
    assert len(cache_frames(catalogue.of("train"), tmp_path / "cache", size=16)) == len(train)


@pytest.mark.parametrize("option", ["--lists", "--val-lists"])
def test_converted_frames(colocam, tmp_path, option):
    root = archives.converted(tmp_path / "frames", tmp_path / "lists")
    command = ["index", "youtube-objects", root, "--version", "2.2", "-o", tmp_path / "out"]
    outcome = colocam(*command, option, tmp_path / "lists")
    assert outcome.code == 0
    assert "validation videos from the list" in outcome.out
    assert "depend on the sampled videos" not in outcome.err
    assert len(read_catalogue(tmp_path / "out" / "manifest.csv").of("val")) == 2


def test_errors_are_one_line(colocam, tmp_path, v1):
    index = ("index", "youtube-objects")
    assert "--version must be one of 1.0, 2.2, got 2" in colocam(*index, v1, "--version", "2").error
    assert "there is no such folder" in colocam(*index, tmp_path / "no", "--version", "1.0").error
    assert "there is no such file" in colocam("index", "frames", tmp_path / "no.csv", "-o", tmp_path / "out").error
    root = archives.v2(tmp_path / "v2", tags=("cat",))
    broken = root / "GroundTruth" / "cat" / "bb_gtTest_cat.mat"
    broken.write_bytes(broken.read_bytes()[:-100])
    assert f"{broken}: not a MATLAB file, or a broken one" in colocam(*index, root, "--version", "2.2").error
    shutil.rmtree(root / "Ranges")
    assert str(broken) in colocam(*index, root, "--version", "2.2", "-o", tmp_path / "out").error
    assert not (tmp_path / "out").exists()
