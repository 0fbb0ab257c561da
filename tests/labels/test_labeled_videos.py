"""Folders of 'colocam label' are exported like the tables of the same videos, one video at a time."""

import hashlib
import json
import weakref
from fractions import Fraction
from pathlib import Path

import pytest

from colocam.errors import ColocamError
from colocam.labels import FORMATS, Format, export, label_folder
from colocam.labels.label_folder import NAME, Labeled, part_path, video_metadata, write_video_list
from colocam.labels.table import LocalizationTable
from colocam.types import Box, Localization
from colocam.video.description import SourceVideo, write_source

SIZES = [(64, 48), (40, 60), (97, 71)]


def write_video(table, index, size):
    """Two frames with a box, one without."""
    tag = ("cat", "=owl", "dog & co")[index % 3]
    for frame in range(3):
        box = None if frame == 1 else Box(1.5, 2, size[0] - 3, size[1] - index % 7)
        table.write(Localization(frame, frame / 25, tag, 0.5, box, 0.25, None, track=frame))


def make_labels(folder, names, metadata=video_metadata):
    done = {}
    for index, name in enumerate(names):
        size, key = SIZES[index % 3], hashlib.sha256(name.encode()).hexdigest()
        path = part_path(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with LocalizationTable(path, ["track"]) as table:
            write_video(table, index, size)
            table.add_metadata(metadata(SourceVideo(Path(name), *size, Fraction(25), 3, 0.12)))
        done[name] = Labeled(key, 3, 3)
    write_video_list(folder, done)
    return folder


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path.suffix != ".parquet"
    }


@pytest.mark.parametrize("to", ["coco", "yolo", "voc", "mot", "cvat", "label-studio", "csv"])
def test_labels_give_what_tables_of_the_same_videos_give(tmp_path, to):
    names = [f"{index}.mp4" for index in range(6)]
    labels = make_labels(tmp_path / "labels", names)
    tables = []
    for index, name in enumerate(names):
        tables.append(tmp_path / "tables" / f"{index}.csv")
        tables[-1].parent.mkdir(exist_ok=True)
        with LocalizationTable(tables[-1], ["track"]) as table:
            write_video(table, index, SIZES[index % 3])
        write_source(tables[-1], SourceVideo(Path(name), *SIZES[index % 3], Fraction(25), 3, 0.12))
    export([labels], to, tmp_path / "one")
    export(tables, to, tmp_path / "other")
    one, other = files_of(tmp_path / "one"), files_of(tmp_path / "other")
    assert one
    assert one == other


def test_one_video_at_a_time_is_in_memory(tmp_path, monkeypatch):
    alive, most, whole = [], [], label_folder.read_video

    def counted(*words):
        video = whole(*words)
        alive.append(weakref.ref(video))
        most.append(sum(one() is not None for one in alive))
        return video

    monkeypatch.setattr(label_folder, "read_video", counted)
    labels = make_labels(tmp_path / "labels", [f"{index}.mp4" for index in range(12)])
    for to in FORMATS:
        if "masks" not in to and "segments" not in to:
            export([labels], to, tmp_path / to)
    assert len(alive) > 12
    assert max(most) <= 3


def test_names_are_unique_short_and_without_folders(tmp_path):
    names = ["a/b.mp4", "a_b.mp4", "a/b.avi", "../c.mp4", "x" * 200 + "/" + "é" * 100 + ".mp4", ".mp4", "a\\b.mp4"]
    labels = make_labels(tmp_path / "labels", names)
    seen = []
    FORMATS["names"] = Format("", lambda labels, _, __: seen.extend(video.name for video in labels.videos))
    try:
        export([labels], "names", tmp_path / "out")
    finally:
        del FORMATS["names"]
    assert len(set(seen)) == len(names)
    assert all("/" not in name and len(name.encode()) < 130 and name.strip(".") for name in seen)
    assert {"a_b", "a_b-2", "a_b-3"} < set(seen)


def test_damaged_labels(tmp_path, colocam):
    labels, out = make_labels(tmp_path / "labels", ["a.mp4", "b.mp4"]), tmp_path / "out"
    both = colocam("export", labels, labels, "--to", "coco", "-o", out)
    assert both.error.startswith("error: a folder of 'colocam label' must be exported on its own")
    assert "--video must be the folder" in colocam("export", labels, "--video", "x", "--to", "coco", "-o", out).error
    part = next((labels / "parts").rglob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:100] + bytes([whole[100] ^ 4]) + whole[101:])
    error = colocam("export", labels, "--to", "coco", "-o", out).error
    assert error.startswith(f"error: {part}: ")
    assert error.endswith(": delete it and run the same 'colocam label' again")
    part.write_bytes(whole)
    part.write_bytes(part.read_bytes()[:-20])
    assert "run 'colocam label' again" in colocam("export", labels, "--to", "coco", "-o", out).error
    listed = (labels / NAME).read_bytes()
    for damaged in (b"PAR1", listed.replace(b"a.mp4", b"\xff\xfe.mp")):
        (labels / NAME).write_bytes(damaged)
        assert "lists no video" in colocam("export", labels, "--to", "coco", "-o", out).error
    other = make_labels(tmp_path / "other", ["a.mp4"], metadata=lambda _: {"colocam.video": json.dumps({"format": 1})})
    assert "run 'colocam label' again" in colocam("export", other, "--to", "coco", "-o", out).error
    old = make_labels(tmp_path / "old", ["a.mp4"], metadata=lambda _: {})
    with pytest.raises(ColocamError, match="does not describe its video: run 'colocam label' again"):
        export([old], "coco", out)
    assert not out.exists()
