"""A user's files are theirs: ``localize`` replaces only what it wrote itself, and takes no result for a video."""

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.inference.localize import localize_file, localize_videos
from colocam.inference.videos import find_videos
from colocam.video.fence import FencedReader, decode
from tests.helpers.csv_tables import numbers_of

MODEL = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx"


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_another_video_of_the_user_is_not_replaced(trained, video, colocam):
    """video.mkv would become video.mp4, which is another video."""
    other = video.with_suffix(".mkv")
    shutil.copy(video, other)
    before = contents_of(video.parent)
    outcome = colocam("localize", trained, other, "-o", video.parent)
    assert outcome.code == 1
    remedy = "choose another output folder, or --overwrite"
    assert outcome.error == f"error: {video} exists and was not written by colocam: {remedy}"
    assert contents_of(video.parent) == before
    assert colocam("localize", trained, other, "-o", video.parent, "--overwrite").code == 0
    assert video.read_bytes() != before["video.mp4"]


@pytest.mark.parametrize("name", ["video.csv", "video.video.json", "video.mp4"])
def test_files_that_stand_where_results_go(trained, video, tmp_path, colocam, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_bytes(b"x")
    (video.parent / "b.mp4").write_bytes(video.read_bytes())
    outcome = colocam("localize", trained, video.parent, "-o", out)
    assert f"warning: {out / name} exists and was not written by colocam" in outcome.err
    assert outcome.error == "error: 1 of 2 videos were left out, see the warnings; the others are done"
    assert (out / name).read_bytes() == b"x"
    assert sorted(contents_of(out)) == ["b.csv", "b.mp4", "b.video.json", name]


def test_a_video_named_as_a_table(trained, video, colocam, monkeypatch):
    odd = video.rename(video.with_suffix(".csv"))
    before = odd.read_bytes()
    monkeypatch.chdir(odd.parent)
    for more in ([], ["--overwrite"]):
        outcome = colocam("localize", trained, odd.name, "-o", ".", "--no-video", *more)
        assert outcome.error == "error: video.csv would overwrite the video itself: choose another output folder"
    assert odd.read_bytes() == before


def test_an_edited_table_is_replaced_only_if_told(trained, video, tmp_path, colocam):
    command = ["localize", trained, video, "-o", tmp_path / "out", "--no-video", "--smooth", "none"]
    table = tmp_path / "out" / "video.csv"
    assert colocam(*command).code == 0
    assert colocam(*command, "--every", "2").code == 0  # not edited: replaced
    assert numbers_of(table) == list(range(0, 20, 2))
    table.write_text("corrected by hand", encoding="utf-8")
    outcome = colocam(*command)
    assert f"{table} exists and was changed since: choose another output folder, or --overwrite" in outcome.error
    assert table.read_text(encoding="utf-8") == "corrected by hand"
    with pytest.raises(ColocamError, match="was changed since"):
        localize_file(trained, video, tmp_path / "out", annotate=False)
    assert colocam(*command, "--overwrite").code == 0
    assert numbers_of(table) == list(range(20))


def test_links_in_the_place_of_results(trained, video, tmp_path, colocam):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "mine.csv").write_text("mine", encoding="utf-8")
    for target in ("mine.csv", "nowhere.csv"):
        (out / "video.csv").unlink(missing_ok=True)
        (out / "video.csv").symlink_to(tmp_path / target)
        for more in ([], ["--overwrite"]):
            error = colocam("localize", trained, video, "-o", out, "--no-video", *more).error
            assert "video.csv exists and is not a regular file: choose another output folder" in error
        assert (out / "video.csv").is_symlink()
    assert (tmp_path / "mine.csv").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "nowhere.csv").exists()


def test_a_video_whose_results_are_beside_it_is_no_output(trained, video, colocam):
    folder, before = video.parent, video.read_bytes()
    assert colocam("localize", trained, video, "-o", folder, "--no-video").code == 0
    other = video.with_suffix(".mkv")
    shutil.copy(video, other)
    outcome = colocam("localize", trained, other, "-o", folder, "--overwrite")
    assert f"{video} is a video with its results next to it: choose another output folder" in outcome.error
    assert video.read_bytes() == before


def test_results_in_the_folder_of_the_videos_are_no_videos(trained, video, colocam):
    videos = video.parent
    video.rename(videos / "video.avi")
    shutil.copy(videos / "video.avi", videos / "video.mkv")
    command = ["localize", trained, videos, "-o", videos]
    assert colocam(*command).code == 0
    first = contents_of(videos)
    assert {name for name in first if name.endswith(".mp4")} == {"video.avi.mp4", "video.mkv.mp4"}
    again = colocam(*command)
    assert again.code == 0
    assert again.err.count("kept (--overwrite recomputes it)") == 2
    assert contents_of(videos) == first
    assert len(find_videos([videos], videos.parent / "out")) == 2
    (videos / "video.mkv").rename(videos / "video.mkv.mp4")  # now a video has the name of a result
    assert [found.name for found in find_videos([videos], videos.parent / "out")] == ["video", "video.mkv"]


@pytest.mark.parametrize("moment", range(4))
def test_a_command_stopped_between_two_files_can_be_repeated(trained, video, tmp_path, colocam, monkeypatch, moment):
    """New settings, so that old results are replaced; the moments are those at which a file gets its name."""
    out, calls, replace = tmp_path / "out", [], Path.replace
    assert colocam("localize", trained, video, "-o", out).code == 0
    command = ["localize", trained, video, "-o", out, "--every", "2"]

    def stop(path, target):
        if target.parent == out:
            calls.append(target)
            if len(calls) == moment + 1:
                raise ColocamError("stopped")
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        assert colocam(*command).error == "error: stopped"
    assert len(calls) == moment + 1
    assert colocam(*command).err.count("wrote ") == 1
    assert numbers_of(out / "video.csv") == list(range(0, 20, 2))
    assert len(list(decode(out / "video.mp4"))) == 10
    assert not list(out.glob(".*"))


def test_who_writes_the_same_results_waits_and_then_keeps_them(trained, video, tmp_path, monkeypatch, capfd):
    """Two commands at once, as in two containers."""
    out, ready, go = tmp_path / "out", threading.Event(), threading.Event()
    whole = FencedReader.frames

    def slow(reader, *asked):
        ready.set()
        go.wait()
        yield from whole(reader, *asked)

    monkeypatch.setattr(FencedReader, "frames", slow)
    first = threading.Thread(target=lambda: list(localize_videos(trained, [video], out)))
    first.start()
    ready.wait()
    monkeypatch.setattr("colocam.utils.locks.say", lambda text: go.set() or print(text))
    assert list(localize_videos(trained, [video], out)) == []
    first.join()
    seen = capfd.readouterr()
    assert f"{out / 'video'} is being written by process {os.getpid()} on " in seen.out
    assert "video.csv exists for the same video, model and settings, so it is kept" in seen.err
    assert len(list(decode(out / "video.mp4"))) == 20
    assert not list(out.glob(".*"))


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere refuse names that are no text")
def test_a_name_that_is_not_utf8(video, tmp_path):
    """Results are recognized as ours by their escaped names."""
    odd = video.rename(video.with_name("f\udcff.mp4"))
    first = list(localize_videos(MODEL, [odd], tmp_path / "out"))
    assert first[0].table.is_file()
    assert list(localize_videos(MODEL, [odd], tmp_path / "out")) == []
    assert len(list(localize_videos(MODEL, [odd], tmp_path / "out", options=Options(smooth="none")))) == 1
    with pytest.raises(ColocamError, match="contains no video"):
        find_videos([tmp_path / "out"], tmp_path / "other")
