"""Several videos in one command, parts of videos, pipes: which files appear, and which are left alone."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError
from colocam.inference import Localizer, engine
from colocam.inference import videos as videos_module
from colocam.inference.localize import Writing, localize_file, localize_videos
from colocam.inference.rows import OneMask, refine_windows
from colocam.inference.videos import find_videos, refuse_overwriting, stored_videos
from colocam.labels import review as review_module
from colocam.temporal.smoothing import FrameObservation
from colocam.types import VideoFrame
from colocam.utils import digests as digests_module
from colocam.utils.progress import say
from colocam.video.fence import decode, open_video, probe
from colocam.video.frame_choice import FrameChoice
from colocam.video.input import VideoInput
from colocam.video.reader import VideoReader
from tests.helpers.csv_tables import csv_rows, numbers_of
from tests.helpers.endless_pass import endless
from tests.helpers.one_pass import one_pass

ONNX = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx"


def names_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# which videos, and what their files are called


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_a_folder_gives_all_its_videos_and_keeps_its_own_folders(tmp_path):
    touch(tmp_path / "in", "b10.mp4", "b9.mp4", "cat/tom.mkv", "notes.txt", ".hidden.mp4", ".git/x.mp4", "a.jpg")
    videos = find_videos([tmp_path / "in", "-"], tmp_path / "out")
    found = [(video.source.address, video.name) for video in videos]
    named = [("b9.mp4", "b9"), ("b10.mp4", "b10"), ("cat/tom.mkv", "cat/tom")]
    assert found == [*((str(tmp_path / "in" / path), target) for path, target in named), ("-", "stdin")]
    assert Writing().files(videos[2], tmp_path / "out").table == tmp_path / "out" / "cat" / "tom.csv"


def test_a_long_look_for_videos_says_so(tmp_path, capsys, monkeypatch):
    touch(tmp_path, *(f"{index % 30}/{index}.{'mp4' if index < 9 else 'txt'}" for index in range(300)))
    assert len(find_videos([tmp_path], tmp_path / "out")) == 9
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(videos_module, "SECONDS_IN_SILENCE", -1.0)
    assert len(find_videos([tmp_path], tmp_path / "out")) == 9
    said = capsys.readouterr().err
    assert said.startswith(f"looking for videos in {tmp_path}: 300 files in ")
    assert said.endswith("  9 may be videos\n")


def test_the_whole_file_system_is_refused_before_it_is_read(tmp_path, colocam, monkeypatch):
    monkeypatch.setattr(videos_module.os, "walk", None)
    (tmp_path / "model.json").touch()
    for command in ("localize", "label"):
        error = colocam(command, tmp_path, "/", "-o", tmp_path / "out").error
        assert error == "error: / is the whole file system: name the folder that contains the videos"


def test_file_systems_of_the_kernel_are_left_out(tmp_path, capsys, monkeypatch):
    for name in ("proc/1/a.mp4", "sys/b.mp4", "dev/c.mp4", "videos/dev/d.mp4"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert len(find_videos([tmp_path], tmp_path / "out")) == 4
    mounted = {str(tmp_path / name) for name in ("proc", "sys", "dev")}
    monkeypatch.setattr(Path, "is_mount", lambda path: str(path) in mounted)
    (video,) = find_videos([tmp_path], tmp_path / "out")
    assert video.source.address == str(tmp_path / "videos" / "dev" / "d.mp4")
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"skipped {tmp_path / name}: it belongs to the kernel" for name in ("dev", "proc", "sys")
    ]


def test_folders_of_pictures_are_videos(tmp_path):
    touch(tmp_path / "in", "cat/tom/1.jpg", "cat/tom/2.jpg", "dog/shot.2/1.PNG", "videos/a.mp4", "videos/poster.jpg")
    videos = find_videos([tmp_path / "in", tmp_path / "in" / "cat" / "tom"], tmp_path / "out")
    found = [(video.source.address, video.name) for video in videos]
    named = [("cat/tom", "cat/tom"), ("dog/shot.2", "dog/shot.2"), ("videos/a.mp4", "videos/a"), ("cat/tom", "tom")]
    assert found == [(str(tmp_path / "in" / path), target) for path, target in named]


def test_the_folder_of_pictures_one_is_in(tmp_path, monkeypatch):
    touch(tmp_path / "tom", "1.jpg", "2.jpg")
    monkeypatch.chdir(tmp_path / "tom")
    (video,) = find_videos(["."], tmp_path / "out")
    assert video.name == "tom"
    refuse_overwriting([tmp_path / "out" / "tom.mp4"], stored_videos([video]))
    with pytest.raises(ColocamError, match=r"tom\.mp4 would be written among the images: choose another output folder"):
        refuse_overwriting([tmp_path / "tom" / "tom.mp4"], stored_videos([video]))


def test_results_in_the_folder_itself_are_no_videos(tmp_path):
    touch(tmp_path, "a.mkv", "out/a.mp4", "out/deep/b.mp4")
    assert [video.source.address for video in find_videos([tmp_path], tmp_path / "out")] == [str(tmp_path / "a.mkv")]


def test_one_name_twice(tmp_path):
    touch(tmp_path, "x/a.mp4", "x/a.mkv", "y/a.mp4")
    first = find_videos([tmp_path / "x"], tmp_path / "out")
    assert [video.name for video in first] == ["a.mkv", "a.mp4"]
    with pytest.raises(ColocamError, match=r"x/a\.mp4 and .*y/a\.mp4 have the same name: give the folder"):
        find_videos([tmp_path / "x" / "a.mp4", tmp_path / "y" / "a.mp4"], tmp_path / "out")
    together = find_videos([tmp_path], tmp_path / "out")
    assert [video.name for video in together] == ["x/a.mkv", "x/a.mp4", "y/a"]


def test_a_video_named_as_the_result_of_another_keeps_its_ending(tmp_path):
    touch(tmp_path, "a.avi", "a.mkv", "a.mkv.mp4", "a.mkv.mp4.avi", "b.avi")
    videos = find_videos([tmp_path], tmp_path / "out")
    assert [video.name for video in videos] == ["a.avi", "a.mkv", "a.mkv.mp4", "a.mkv.mp4.avi", "b"]


def test_a_folder_without_a_video(tmp_path):
    touch(tmp_path, "notes.txt")
    with pytest.raises(ColocamError, match="contains no video: name the videos, or a folder that holds them"):
        find_videos([tmp_path], tmp_path / "out")


# what is written


def test_pictures_give_what_their_video_gives(trained, tmp_path, make_video, square_video, colocam):
    """The same frames, without loss, as a video and as pictures: the same table, and labels with pictures of it."""
    pictures = square_video("cat", 77, 12, (80, 60))[0]
    video = make_video(tmp_path / "a.mkv", pictures, codec="ffv1", pix_fmt="bgr0")
    folder = tmp_path / "b"
    folder.mkdir()
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(folder / f"{number}.png"), picture[..., ::-1])
    first = localize_file(trained, video, tmp_path / "out")
    second = localize_file(trained, folder, tmp_path / "out")
    assert second.table == tmp_path / "out" / "b.csv"
    rows = csv_rows(second.table)
    assert [row.pop("picture") for row in rows] == [f"{number}.png" for number in range(12)]
    assert rows == csv_rows(first.table)
    assert len(list(decode(second.video))) == 12
    assert [one.box for one in Localizer.load(trained)(folder)] == [one.box for one in Localizer.load(trained)(video)]
    command = ("localize", trained, folder, "-o", tmp_path / "again")
    assert colocam(*command).code == 0
    assert "b.csv exists for the same video" in colocam(*command).err
    shutil.copy(folder / "0.png", folder / "1.png")
    assert colocam(*command).err.count("wrote ") == 1
    assert colocam("export", second.table, "--to", "coco", "--images", "-o", tmp_path / "coco").code == 0
    assert {path.name for path in (tmp_path / "coco" / "images").iterdir()} == {f"{n}.png" for n in range(12)}


def test_a_part_of_a_video(trained, video, tmp_path):
    """Numbers and times are the video's; the annotated part is a video of its own, which begins at 0."""
    choice = FrameChoice(start=0.2, end=0.6, every=2)
    annotated, table = localize_file(trained, video, tmp_path / "out", choice=choice)
    assert numbers_of(table) == [5, 7, 9, 11, 13]
    assert [float(row["pts"]) for row in csv_rows(table)] == pytest.approx([0.2, 0.28, 0.36, 0.44, 0.52])
    assert [frame.pts for frame in decode(annotated)] == pytest.approx([0, 0.08, 0.16, 0.24, 0.32], abs=1e-4)
    described = json.loads((tmp_path / "out" / "video.video.json").read_text(encoding="utf-8"))
    assert (described["frames"], described["width"], described["height"]) == (20, 80, 60)


def test_a_range_without_a_frame(trained, video, tmp_path):
    with pytest.raises(ColocamError) as error:
        localize_file(trained, video, tmp_path / "out", choice=FrameChoice(start=60.0))
    assert str(error.value) == f"{video} has no frame from second 60; its 20 frames begin at second 0"
    assert names_in(tmp_path / "out") == []


@pytest.fixture
def loads(monkeypatch):
    """How often a model was loaded."""
    counted, load = [], engine.Model.load
    monkeypatch.setattr(engine.Model, "load", lambda self: counted.append(self.run) or load(self))
    return counted


def test_several_videos_and_the_same_command_again(trained, video, tmp_path, make_video, square_video, colocam, loads):
    videos, out = video.parent, tmp_path / "out"
    make_video(videos / "deep" / "owl.mkv", square_video("owl", 3, 6)[0])
    (videos / "broken.avi").write_bytes(b"no video" * 99)
    (videos / "notes.txt").write_text("not a video", encoding="utf-8")
    command = ["localize", trained, videos, "-o", out, "--no-video", "--smooth", "none"]
    first = colocam(*command)
    assert first.code == 1
    assert first.err.count("warning: cannot read ") == 1
    assert "broken.avi: not a complete video file" in first.err
    assert first.err.endswith("error: 1 of 3 videos cannot be read, see the warnings; the others are done\n")
    assert names_in(out) == ["deep/owl.csv", "deep/owl.video.json", "video.csv", "video.video.json"]
    (videos / "broken.avi").unlink()
    (out / "deep" / "owl.csv").write_text("edited", encoding="utf-8")
    again = colocam(*command)
    assert again.code == 0
    assert again.err.count("kept (--overwrite recomputes it)") == 2
    assert len(loads) == 1  # for videos without results alone
    assert (out / "deep" / "owl.csv").read_text(encoding="utf-8") == "edited"
    assert colocam(*command, "--overwrite").err.count("wrote ") == 2
    assert numbers_of(out / "deep" / "owl.csv") == list(range(6))
    (out / "video.csv").unlink()
    assert colocam(*command).err.count("wrote ") == 1
    assert colocam(*command, "--batch", "3").err.count("wrote ") == 0  # boxes do not depend on it
    shutil.move(videos, videos.with_name("moved"))
    command[2] = videos.with_name("moved")
    assert colocam(*command).err.count("wrote ") == 0
    moved = command[2] / "video.mp4"
    before = moved.stat()
    moved.write_bytes(moved.read_bytes().replace(b"Lavf", b"Lawf"))
    os.utime(moved, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert colocam(*command).err.count("wrote ") == 1  # another video of the same name, size and time
    other = colocam(*command, "--every", "2")
    assert (
        other.err.count("2 tables were made from a different video, with different settings or by another version") == 1
    )
    assert other.err.count("wrote ") == 2
    assert numbers_of(out / "video.csv") == list(range(0, 20, 2))
    command[1] = tmp_path / "gone.onnx"
    assert f"{command[1]}: there is no run folder, ONNX file or ready model with this name" in colocam(*command).error


def test_a_large_video_whose_digest_is_unknown_is_read_by_its_task_once(video, tmp_path, monkeypatch, loads):
    monkeypatch.setattr(digests_module, "SMALL", 0)
    monkeypatch.setattr(digests_module, "SETTLED", -1.0)
    out = tmp_path / "out"
    for written in (1, 0):
        assert len(list(localize_videos(ONNX, [video], out, Writing(annotate=False)))) == written
        assert len(loads) == 1
    (out / digests_module.MEMORY).unlink()
    for loaded in (2, 2):
        assert list(localize_videos(ONNX, [video], out, Writing(annotate=False))) == []
        assert len(loads) == loaded


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_last_line_says_how_many_frames_look_empty(
    trained, video, tmp_path, make_video, square_video, colocam, workers
):
    make_video(video.parent / "owl.mkv", square_video("owl", 3, 6)[0])
    command = ["localize", trained, video.parent, "-o", tmp_path / "out", "--no-video", "--workers", workers]
    command += ["--tag", "owl"]
    plain = colocam(*command).err.splitlines()[-1]
    found = sorted(float(row["presence"]) for table in (tmp_path / "out").glob("*.csv") for row in csv_rows(table))
    empty, hint = sum(one < 0.5 for one in found), ": --presence 0.5 hides their boxes"
    assert plain == f"{empty} of 26 frames look empty (presence below 0.5){hint if empty else ''}"
    bound = round((found[9] + found[10]) / 2, 6)
    hidden = colocam(*command, "--presence", str(bound)).err.splitlines()[-1]
    assert hidden == f"10 of 26 frames look empty (presence below {bound}): their boxes are hidden"


def test_frames_of_a_class_in_doubt_are_not_called_empty(video, tmp_path, colocam, monkeypatch):
    """Presence is that of the class, which may be the wrong one in every frame."""
    command = ["localize", ONNX, video, "-o", tmp_path / "out", "--no-video", "--workers", "1"]
    monkeypatch.setattr(review_module, "CLASS_IN_DOUBT", 1.0)
    said = colocam(*command).err
    table = csv_rows(tmp_path / "out" / "video.csv")
    assert all(float(row["probability"]) < 1 for row in table)
    assert f"the class is in doubt in all frames of {video}: look there first" in said
    assert "look empty" not in said
    monkeypatch.setattr(review_module, "CLASS_IN_DOUBT", 0.0)
    said = colocam(*command, "--overwrite").err
    assert "in doubt" not in said
    assert f"of {len(table)} frames look empty" in said


def test_one_bad_file_costs_one_file(trained, video, tmp_path, make_video, colocam):
    videos, out = video.parent, tmp_path / "out"
    (videos / "codec.mp4").write_bytes(video.read_bytes().replace(b"avc1", b"zzzz"))
    (videos / "list.m3u8").write_text("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlist.m3u8\n", encoding="utf-8")
    (videos / "loop.mp4").symlink_to("loop.mp4")
    (videos / "memory.mp4").symlink_to("/proc/self/mem")  # its first bytes cannot be read, also not by root
    os.mkfifo(videos / "pipe.mp4")
    for length in (245, 251):  # a description, or a table, is too long
        shutil.copy(video, videos / ("n" * length + ".mp4"))
    make_video(videos / "days.mkv", 3, times=[0.0, 86_400.0, 172_800.0])
    make_video(videos / "wide.mkv", [np.zeros((2, 20_000, 3), np.uint8)] * 2, codec="ffv1")
    slow = make_video(videos / "slow.avi", 3, codec="mpeg4")
    data = bytearray(slow.read_bytes())
    scale = data.index(b"strh") + 28
    data[scale : scale + 8] = (2**31 - 1).to_bytes(4, "little") + (1).to_bytes(4, "little")
    slow.write_bytes(data)
    outcome = colocam("localize", trained, videos, "-o", out, "--smooth", "none", "--color-mean", "off")
    assert outcome.code == 1
    warnings = [line for line in outcome.err.splitlines() if line.startswith("warning: cannot")]
    told = {
        "codec.mp4": "no decoder",
        "list.m3u8": "a playlist",
        "loop.mp4": "symbolic links",
        "memory.mp4": "Input/output error",
        "n" * 245 + ".mp4": "rename the video",
        "n" * 251 + ".mp4": "rename the video",
        "pipe.mp4": "a pipe or a device",
        "wide.mp4": "16384 pixels per side",
    }
    for line, (name, words) in zip(warnings, told.items(), strict=True):
        assert f"/{name}: " in line
        assert words in line
    assert outcome.err.endswith("error: 8 of 11 videos were left out, see the warnings; the others are done\n")
    endings = ("csv", "mp4", "video.json")
    assert names_in(out) == [f"{name}.{ending}" for name in ("days", "slow", "video") for ending in endings]
    assert [float(row["pts"]) for row in csv_rows(out / "days.csv")] == [0, 86_400, 172_800]
    assert len(list(decode(out / "slow.mp4"))) == 3


def test_one_bad_file_by_itself_is_one_error(trained, tmp_path, colocam):
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlist.m3u8\n", encoding="utf-8")
    for name, told in (
        ("loop.mp4", "symbolic links"),
        ("list.m3u8", "or set --format to hls"),
        ("a" * 300, "too long"),
        ("gone.mp4", "there is no such file"),
    ):
        outcome = colocam("localize", trained, tmp_path / name, "-o", tmp_path / "out")
        assert outcome.code == 1
        assert told in outcome.error
        assert outcome.err.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("every", [1, 3])
def test_large_frames_are_decoded_again_with_the_same_result(trained, video, tmp_path, monkeypatch, every):
    choice = FrameChoice(every=every)
    localize_file(trained, video, tmp_path / "once", choice=choice)
    monkeypatch.setattr("colocam.inference.results.MOST_WAITING", 0)
    localize_file(trained, video, tmp_path / "twice", choice=choice)
    for name in ("video.csv", "video.mp4"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


def test_options_of_the_command(trained, video, tmp_path, colocam):
    out = tmp_path / "out"
    for options, numbers in (
        (["--fps", "5"], [0, 5, 10, 15]),
        (["--from", "0.4", "--to", "0.52"], [10, 11, 12]),
        (["--frames", "17:"], [17, 18, 19]),
        (["--every", "9", "--batch", "2"], [0, 9, 18]),
    ):
        outcome = colocam("localize", trained, video, "-o", out, "--no-video", *options)
        assert outcome.code == 0, outcome.err
        assert numbers_of(out / "video.csv") == numbers
    wrong = colocam("localize", trained, video, "-o", out, "--every", "2", "--fps", "3")
    assert wrong.error == "error: --fps and --every cannot be used together: give one of them"
    assert "--frames must be A:B" in colocam("localize", trained, video, "-o", out, "--frames", "3").error
    assert "--to must be a finite number" in colocam("localize", trained, video, "-o", out, "--to", "nan").error
    assert "--format nonsense: " in colocam("localize", trained, video, "-o", out, "--format", "nonsense").error


@pytest.fixture
def pipe_in():
    """``pipe_in(data)`` makes the standard input of this process a pipe that holds ``data``, at most 64 KiB."""
    kept = os.dup(0)

    def connect(data):
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        os.dup2(reading, 0)
        os.close(reading)

    yield connect
    os.dup2(kept, 0)
    os.close(kept)


def test_a_video_that_is_piped_in(trained, tmp_path, make_video, square_video, colocam, pipe_in):
    video = make_video(tmp_path / "video.ts", square_video("cat", 1, 9)[0])
    pipe_in(video.read_bytes())
    outcome = colocam("localize", trained, "-", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "localizing the standard input: " in outcome.err
    table = tmp_path / "out" / "stdin.csv"
    assert [float(row["pts"]) for row in csv_rows(table)] == pytest.approx([frame.pts for frame in decode(video)])
    assert json.loads((tmp_path / "out" / "stdin.video.json").read_text(encoding="utf-8"))["frames"] == 9
    assert len(list(decode(tmp_path / "out" / "stdin.mp4"))) == 9
    pipe_in(b"nothing of that kind" * 99)
    wrong = colocam("localize", trained, "-", "-o", tmp_path / "none").error
    assert wrong.startswith("error: cannot read the standard input: not a complete video file (")


def test_what_never_ends_is_kept_when_it_is_stopped(trained, tmp_path, monkeypatch, capsys):
    """A pattern without end stands for a camera; the signal comes from within, at a known frame."""
    before = signal.getsignal(signal.SIGINT)
    whole = VideoReader.frames

    def frames(reader, choice, _layout):
        for frame in whole(reader, choice):
            if frame.index == 7 and reader.source.format == "lavfi":
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                asked.wait()
            yield frame

    def told(text):
        return asked.set() if text.startswith("stopping") else say(text)

    asked = threading.Event()
    monkeypatch.setattr("colocam.utils.progress.say", told)
    monkeypatch.setattr(VideoReader, "frames", frames)
    written = localize_file(trained, "testsrc=size=64x48:rate=25", tmp_path / "out", format="lavfi")
    assert numbers_of(written.table) == list(range(8))
    assert len(list(decode(written.video))) == 8
    assert probe(written.video).fps == 25
    assert signal.getsignal(signal.SIGINT) is before
    assert "8 frames in" in capsys.readouterr().err


def test_an_interrupt_while_writing_leaves_neither_files_nor_threads(trained, video, tmp_path, monkeypatch):
    one_pass(Localizer.load(trained).network, np.zeros((2, 32, 32, 3), np.uint8))  # the networks' threads stay
    threads = set(threading.enumerate())

    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("colocam.video.writer.VideoWriter.write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        localize_file(trained, video, tmp_path / "out")
    assert names_in(tmp_path / "out") == []
    assert not set(threading.enumerate()) - threads


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_does_not_wait_for_a_pass(onnx_file, video, tmp_path, number, workers):
    """A pass of a large network on a CPU takes minutes; this one takes longer than the test may."""
    shutil.copy(video, tmp_path / "other.mp4")
    words = [onnx_file, video, tmp_path / "other.mp4", "-o", tmp_path / "out", "--no-video", "--workers", workers]
    command = endless("localize", *words)
    log = tmp_path / "said"
    with (
        log.open("w") as err,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True) as process,
    ):
        try:
            assert process.stdout.readline() == "a pass began\n"
            process.send_signal(number)
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # it prints what its threads wait for
            process.wait(timeout=60)
            pytest.fail(log.read_text())
        finally:
            process.kill()
    said = log.read_text()
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "stopped"
    assert "Traceback" not in said
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_segmenter_is_not_waited_for_either():
    began, stopping, over = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        side = 64

        def embed(self, images):  # noqa: ARG002 - as Segmenter
            began.set()
            over.wait(60)
            raise ValueError

        masks = None

    frame = VideoFrame(0, 0.0, np.zeros((8, 8, 3), np.uint8))
    level = np.full((8, 8), 255, np.uint8)
    one = FrameObservation(frame, np.ones(1, np.float32), level, level, None, np.ones(1, np.float32), cut=True)
    windows = refine_windows((window for window in [[one]]), OneMask(Slow()), int, (stopping,))
    threading.Thread(target=lambda: began.wait(60) and stopping.set()).start()
    with pytest.raises(InterruptedRunError):
        next(windows)
    over.set()


def test_frames_that_passed_the_network_are_progress_before_their_rows_are_written(trained, video):
    """Rows wait for the whole look-ahead, which may be the whole video."""
    told, order = [], []

    def passed(frames):
        told.append(frames)
        order.append("passed")

    localizer, stopping = Localizer.load(trained, "cpu"), threading.Event()
    with open_video(VideoInput(str(video))) as reader:
        order.extend("row" for _ in localizer.stream(reader.frames(), passed=passed, stopping=(stopping,)))
    assert not stopping.is_set()  # it is the caller's, who may use it for the next video
    assert sum(told) == order.count("row") > 0
    assert order[0] == "passed"


def test_several_workers_count_the_frames_that_passed_the_network(onnx_file, video, tmp_path, colocam):
    shutil.copy(video, tmp_path / "other.mp4")
    words = [onnx_file, video, tmp_path / "other.mp4", "-o", tmp_path / "out", "--no-video", "--workers", 2]
    done = colocam("localize", *words)
    frames = sum(len(csv_rows(table)) for table in (tmp_path / "out").glob("*.csv"))
    counts = re.findall(r"localizing 2 videos: (\d+) frames", done.err)
    assert done.code == 0
    assert int(counts[-1]) == frames > 0


def test_an_unknown_overlay_is_refused_with_the_nearest_one():
    with pytest.raises(ArgumentError, match=r"overlay.*contours.*contour"):
        Writing(overlay="contours")
