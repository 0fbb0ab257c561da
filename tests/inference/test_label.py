"""The whole command: what is done, what is done again, what is set aside, and what kills cannot change."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from colocam.boxes import CHOOSERS
from colocam.config.options import make_options
from colocam.errors import ColocamError
from colocam.inference import label as label_module
from colocam.inference import parts
from colocam.inference.engine import Here, Model
from colocam.inference.label import Execution, label_videos
from colocam.inference.localize import Writing, localize_videos
from colocam.inference.task import LocalizeVideo, Worker
from colocam.inference.videos import Shard, Video, stored_source
from colocam.labels import Options, export
from colocam.utils.digests import FileDigests
from colocam.video.decoder_child import Limits
from colocam.video.fence import FencedReader, end_decoders
from colocam.video.frame_choice import ALL
from tests.helpers.child_processes import children
from tests.helpers.hostile_decoder import HOSTILE, make_hostile


def parts_of(labels: Path) -> dict[str, bytes]:
    """All files below ``parts``, temporary ones too, by name."""
    found = [path for path in (labels / "parts").rglob("*") if path.is_file()]
    return {path.relative_to(labels).as_posix(): path.read_bytes() for path in found}


def listed(labels: Path, name: str = "videos") -> list[dict[str, object]]:
    return pq.read_table(labels / f"{name}.parquet").to_pylist()


@pytest.fixture
def here(monkeypatch):
    """Tasks are done in this process; the names of the videos that were labeled."""
    names: list[str] = []
    loaded: dict[str, Worker] = {}

    class Noted(Here):
        def submit(self, task):
            names.append(task.name)
            return super().submit(task)

    @contextmanager
    def opened(asked, *_, digests, **__):
        if (key := asked.key(ALL)) not in loaded:
            loaded[key] = Worker(asked.load()[0])
        loaded[key].digests = FileDigests(digests)
        yield Noted(loaded[key])

    monkeypatch.setattr(label_module, "open_pool", opened)
    return names


def test_shards_together_are_the_whole(model, make_videos, tmp_path, here):
    videos = make_videos(tmp_path / "videos", 7)
    label_videos(model, videos, tmp_path / "whole")
    for index in (1, 2, 3):
        label_videos(model, videos, tmp_path / "shards", Execution(Shard(index, 3)))
    assert len(here) == 14
    whole = parts_of(tmp_path / "whole")
    assert len(whole) == 7
    assert parts_of(tmp_path / "shards") == whole
    rows = listed(tmp_path / "whole")
    assert rows == listed(tmp_path / "shards")
    assert [row["video"] for row in rows] == [f"0/{index:03}.mp4" for index in range(7)]
    assert {row["part"] for row in rows} == set(whole)
    assert {(row["frames"], row["rows"]) for row in rows} == {(3, 3)}
    export([tmp_path / "whole"], "coco", tmp_path / "coco", videos=[videos], options=Options(images=True))
    content = json.loads((tmp_path / "coco" / "annotations" / "instances_default.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in content["videos"]] == [f"0_{index:03}" for index in range(7)]
    assert {(one["width"], one["height"], one["fps"], one["frames"]) for one in content["videos"]} == {(64, 48, 25, 3)}
    images = {path.name for path in (tmp_path / "coco" / "images").iterdir()}
    assert images == {f"0_{video:03}_{frame:06}.jpg" for video in range(7) for frame in range(3)}


def test_a_finished_command_does_nothing_and_damaged_parts_are_made_again(model, make_videos, tmp_path, here):
    videos, labels = make_videos(tmp_path / "videos", 4), tmp_path / "labels"
    label_videos(model, videos, labels)
    before = parts_of(labels)
    here.clear()
    label_videos(model, videos, labels)
    assert here == []
    for path, damage in zip(sorted(before), (b"", before[sorted(before)[1]][:-1], bytes(500)), strict=False):
        (labels / path).write_bytes(damage)
    label_videos(model, videos, labels)
    assert len(here) == 3
    assert parts_of(labels) == before
    (labels / "videos.parquet").unlink()
    label_videos(model, videos, labels)
    assert {(row["frames"], row["rows"]) for row in listed(labels)} == {(3, 3)}


def test_other_options_and_tags_have_their_own_parts(model, make_videos, tmp_path, here):
    videos, labels = make_videos(tmp_path / "videos", 1), tmp_path / "labels"
    table = tmp_path / "videos.csv"
    table.write_text("path,tag\nvideos/0/000.mp4,owl\n", encoding="utf-8")
    label_videos(model, videos, labels)
    label_videos(model, videos, labels, options=make_options(smooth="none"))
    label_videos(model, table, labels)
    label_videos(model, videos, labels, options=make_options(tag="owl"))  # the same part as with the table
    tags = pq.read_table(labels / listed(labels)[-1]["part"]).column("class").to_pylist()
    assert set(tags) == {"owl"}
    label_videos(model, videos, labels, options=make_options(batch=2))  # the same as the first: no result depends on it
    assert len(parts_of(labels)) == 3
    assert here == ["0/000.mp4", "0/000.mp4", "videos/0/000.mp4"]
    with pytest.raises(ColocamError, match=r"tag cannot be used: the catalogue gives videos/0/000.mp4 the tag owl"):
        label_videos(model, table, labels, options=make_options(tag="cat"))


@pytest.mark.usefixtures("here")
def test_a_video_is_listed_once_whatever_named_it(model, make_videos, tmp_path, capfd):
    """Under two names, a detector would be trained and validated with the same video."""
    videos, labels, table = make_videos(tmp_path / "videos", 2), tmp_path / "labels", tmp_path / "videos.csv"
    table.write_text("path,tag\nvideos/0/000.mp4,owl\nvideos/0/001.mp4,\n", encoding="utf-8")

    def names() -> list[object]:
        return [row["video"] for row in listed(labels)]

    label_videos(model, videos, labels)
    assert names() == ["0/000.mp4", "0/001.mp4"]
    label_videos(model, table, labels)
    assert names() == ["videos/0/000.mp4", "videos/0/001.mp4"]
    assert set(pq.read_table(labels / listed(labels)[0]["part"]).column("class").to_pylist()) == {"owl"}
    for place in (videos, tmp_path):
        export([labels], "coco", tmp_path / "coco", videos=[place], options=Options(images=True))
        assert len(list((tmp_path / "coco" / "images").iterdir())) == 6
    (videos / "0" / "000.mp4").rename(videos / "renamed.mp4")
    (videos / "a copy.mp4").write_bytes((videos / "0" / "001.mp4").read_bytes())
    capfd.readouterr()
    label_videos(model, videos, labels)
    assert names() == ["0/001.mp4", "renamed.mp4"]
    assert "a copy.mp4 is a copy of 0/001.mp4, so it is labeled once" in capfd.readouterr().err


def test_a_list_of_version_0_1_0_is_taken_over(model, make_videos, tmp_path, here):
    """It has no column content."""
    videos, labels = make_videos(tmp_path / "videos", 2), tmp_path / "labels"
    label_videos(model, videos, labels)
    old = pq.read_table(labels / "videos.parquet").select(["video", "part", "frames", "rows"])
    pq.write_table(old, labels / "videos.parquet")
    (tmp_path / "videos.csv").write_text("path\nvideos/0/000.mp4\n", encoding="utf-8")
    here.clear()
    label_videos(model, tmp_path / "videos.csv", labels)
    assert here == []
    assert [(row["video"], row["frames"]) for row in listed(labels)] == [("0/001.mp4", 3), ("videos/0/000.mp4", 3)]


def test_a_folder_of_version_0_2_0_is_taken_over(model, make_videos, tmp_path, here):
    """Its list has the old name and the old word for a video, and so have its failures."""
    videos, labels = make_videos(tmp_path / "videos", 2), tmp_path / "labels"
    (videos / "bad.mp4").write_bytes(b"no video")
    with pytest.raises(ColocamError, match="1 of 3"):
        label_videos(model, videos, labels)
    old = pq.read_table(labels / "videos.parquet")
    pq.write_table(old.rename_columns(["film", *old.column_names[1:]]), labels / "films.parquet")
    (labels / "videos.parquet").unlink()
    for path in (labels / "failures").glob("*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace('"video"', '"film"'), encoding="utf-8")
    export([labels], "coco", tmp_path / "coco", videos=[videos])
    here.clear()
    with pytest.raises(ColocamError, match="1 of 3"):
        label_videos(model, videos, labels)
    assert here == []
    assert pq.read_table(labels / "videos.parquet").equals(old)
    assert not (labels / "films.parquet").exists()
    assert [row["video"] for row in listed(labels, "failures")] == ["bad.mp4"]


def test_failures_are_set_aside_until_their_video_changes(model, make_videos, tmp_path, here):
    videos, labels = make_videos(tmp_path / "videos", 2), tmp_path / "labels"
    (videos / "bad.mp4").write_bytes(b"no video")
    message = r"1 of 3 videos could not be labeled, see .*failures.parquet"
    with pytest.raises(ColocamError, match=message):
        label_videos(model, videos, labels)
    (failure,) = listed(labels, "failures")
    assert (failure["video"], failure["attempts"]) == ("bad.mp4", 1)
    assert "bad.mp4: not a complete video file" in failure["reason"]
    assert [row["video"] for row in listed(labels)] == ["0/000.mp4", "0/001.mp4"]
    here.clear()
    with pytest.raises(ColocamError, match=message):
        label_videos(model, videos, labels)
    assert here == []
    (stored,) = (labels / "failures").iterdir()
    (labels / "failures" / "other.json").write_text(stored.read_text().replace('"bad.mp4"', '["bad.mp4"]'))
    with pytest.raises(ColocamError, match=message):
        label_videos(model, videos, labels, Execution(retry_failed=True))
    assert here == ["bad.mp4"]
    (videos / "bad.mp4").write_bytes((videos / "0" / "000.mp4").read_bytes())
    label_videos(model, videos, labels)
    assert listed(labels, "failures") == []
    assert [row["video"] for row in listed(labels)] == ["0/000.mp4", "0/001.mp4"]  # a copy is listed once


@pytest.mark.usefixtures("here")
def test_pipes_and_devices_are_set_aside(model, make_videos, tmp_path):
    """To read them would never end."""
    make_videos(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "videos.csv").write_text("path\n0/000.mp4\npipe.mp4\n/dev/zero\n", encoding="utf-8")
    with pytest.raises(ColocamError, match="2 of 3 videos could not be labeled"):
        label_videos(model, tmp_path / "videos.csv", tmp_path / "labels")
    reasons = {row["video"]: row["reason"] for row in listed(tmp_path / "labels", "failures")}
    assert reasons.keys() == {"pipe.mp4", "/dev/zero"}
    assert all("it is not a regular file" in reason for reason in reasons.values())
    assert len(parts_of(tmp_path / "labels")) == 1


@pytest.mark.parametrize(
    ("what", "reason"),
    [("hangs in compiled code", "its decoder gave no frame for 0.5 s"), ("crashes", "its decoder crashed")],
)
def test_a_video_whose_decoder_fails_is_tried_again_and_set_aside(
    model, make_video, square_video, tmp_path, here, monkeypatch, what, reason
):
    images, labels = square_video("cat", 1, 9)[0], tmp_path / "labels"
    make_video(tmp_path / "videos" / "good.mp4", images)
    make_video(tmp_path / "videos" / "hostile.mp4", images[::-1])
    make_hostile(tmp_path / "patch", HOSTILE[what])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patch"))
    quick = Limits(frame_seconds=0.5 if "hangs" in what else 30.0)
    monkeypatch.setattr(parts, "FencedReader", partial(FencedReader, limits=quick))
    end_decoders()
    with pytest.raises(ColocamError, match="1 of 2 videos could not be labeled"):
        label_videos(model, tmp_path / "videos", labels, Execution(retries=1))
    end_decoders()
    (failure,) = listed(labels, "failures")
    assert (failure["video"], failure["attempts"]) == ("hostile.mp4", 2)
    assert reason in failure["reason"]
    assert [(row["video"], row["frames"]) for row in listed(labels)] == [("good.mp4", 9)]
    assert sorted(here) == ["good.mp4", "hostile.mp4", "hostile.mp4"]


@pytest.mark.usefixtures("here")
def test_a_full_disk_stops_the_command_and_leaves_nothing(model, make_videos, tmp_path, monkeypatch):
    videos, labels = make_videos(tmp_path / "videos", 2), tmp_path / "labels"

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("colocam.utils.files.os.fsync", full)
        with pytest.raises(ColocamError, match="the disk is full"):
            label_videos(model, videos, labels)
        assert parts_of(labels) == {}
    label_videos(model, videos, labels)
    assert len(parts_of(labels)) == 2


def test_wrong_arguments(model, make_videos, tmp_path, colocam):
    videos = make_videos(tmp_path / "videos", 1)
    error = colocam("label", model, videos, "-o", tmp_path / "a", "--shard", "3/2").error
    assert error == "error: --shard must be I/N with 1 ≤ I ≤ N, e.g. 3/8, got 3/2"
    assert "--workers must be" in colocam("label", model, videos, "-o", tmp_path / "a", "--workers", "0").error
    assert "contains no labels" in colocam("label", model, videos, "-o", tmp_path / "videos").error
    assert "ray" in colocam("label", model, videos, "-o", tmp_path / "a", "--ray", "nowhere:1").error
    assert (
        "there is no run folder, ONNX file or ready model with this name"
        in colocam("label", tmp_path / "x.onnx", videos, "-o", tmp_path / "a").error
    )


CHOOSER = """
import numpy as np
from colocam.boxes import CHOOSERS, Candidates, Chooser

def corner(maps, threshold):
    return [Candidates(np.array([[1.0, 2.0, 9.0, 8.0]]), np.ones(1), np.full(1, threshold), 1) for _ in maps]

CHOOSERS["corner"] = Chooser("always the same corner", corner)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_load_the_extensions_of_the_command(model, make_videos, tmp_path, colocam, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    make_videos(tmp_path / "videos", 2)
    Path("my_choosers.py").write_text(CHOOSER, encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", "my_choosers.py")
    monkeypatch.setitem(CHOOSERS, "corner", CHOOSERS["largest"])  # so that it is taken away again
    done = colocam("label", model, "videos", "-o", "labels", "--workers", workers, "--chooser", "corner")
    assert done.code == 0, done.err
    boxes = [pq.read_table(path).select(["x1", "y1", "x2", "y2"]).to_pylist() for path in Path().rglob("parts/*/*")]
    assert len(boxes) == 2
    assert len({tuple(row.values()) for table in boxes for row in table}) == 1
    assert "wrote labels/videos.parquet; next: colocam export labels --to coco -o DATA" in done.err


def test_an_actor_elsewhere_loads_the_extensions_of_the_command(model, make_videos, tmp_path, monkeypatch):
    """A node of a cluster has neither the environment nor the current folder of the command."""
    (tmp_path / "my_choosers.py").write_text(CHOOSER, encoding="utf-8")
    make_videos(tmp_path / "videos", 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLOCAM_EXTENSIONS", "my_choosers.py")
    asked, video = (
        Model(model, make_options(chooser="corner")),
        Video(stored_source(tmp_path / "videos" / "0" / "000.mp4"), "0"),
    )
    task = LocalizeVideo(video, parts.Parts(tmp_path / "labels"), "key")
    script = (
        "import pickle, sys; from colocam.integrations.ray_workers import Actor; "
        "asked, task, memory = pickle.load(sys.stdin.buffer); actor = Actor(asked, 1, memory, 60.0); "
        "told = actor.do(task); print(told['do'], told['passed']); actor.close()"
    )
    (tmp_path / "elsewhere").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "COLOCAM_EXTENSIONS"}
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "elsewhere",
        env=environment,
        input=pickle.dumps((asked, task, tmp_path / "memory")),
        capture_output=True,
        check=False,
    )
    assert (told.stdout, told.returncode) == (b"done 3\n", 0), told.stderr.decode()


def test_parts_are_equal_to_the_tables_of_localize_whatever_dies(model, make_videos, tmp_path):
    """Worker processes are killed while videos are labeled; rows are those of ``localize`` in one process."""
    videos, labels = make_videos(tmp_path / "videos", 24), tmp_path / "labels"
    writing = Writing("parquet", annotate=False)
    tables = {
        one.table.stem: pq.read_table(one.table) for one in localize_videos(model, [videos], tmp_path / "t", writing)
    }
    killed, ended = [], threading.Event()

    def kill():
        while not ended.wait(0.02):
            made = len(list((labels / "parts").glob("*/*.parquet")))
            if made >= 6 * (len(killed) + 1) and (found := children("worker_process")):
                os.kill(found[0], signal.SIGKILL)
                killed.append(made)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        label_videos(model, videos, labels, Execution(workers=2, limit=60.0, retries=5))
    finally:
        ended.set()
        killer.join()
    assert len(killed) >= 2
    assert listed(labels, "failures") == []
    rows = listed(labels)
    assert len(rows) == 24
    for row in rows:
        part = pq.read_table(labels / row["part"])
        assert part.equals(tables[Path(row["video"]).stem])


@pytest.mark.usefixtures("here")
def test_two_commands_at_once(model, make_videos, tmp_path):
    """Both find the same videos waiting, and write the same parts."""
    videos, labels = make_videos(tmp_path / "videos", 6), tmp_path / "labels"
    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(label_videos, model, videos, labels) for _ in range(2)]:
            run.result()
    assert len(parts_of(labels)) == 6
    assert len(listed(labels)) == 6
    label_videos(model, videos, tmp_path / "alone")
    assert parts_of(tmp_path / "alone") == parts_of(labels)
