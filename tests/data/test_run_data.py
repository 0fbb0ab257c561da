"""The data of a run: known by content, found again where they were moved, refused where they changed."""

import json
import os
import shutil
from pathlib import Path

import pytest

from colocam.config import load_config, read_config
from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.run_data import read_data
from colocam.errors import ColocamError
from colocam.run import create_run, open_run

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"


@pytest.fixture
def project(collection, tmp_path):
    """A folder with ``data/manifest.csv``, ``data/videos`` and a run ``runs/r`` whose training is to begin."""
    shutil.copytree(collection.manifest.parent, tmp_path / "project" / "data")
    begin(tmp_path / "project")
    return tmp_path / "project"


def begin(project, out=None, source="manifest.csv", frames=None):
    out = out or project / "runs" / "r"
    catalogue = read_catalogue(project / "data" / source)
    config = load_config(overrides=["frames.resize=36", "frames.crop=32"])
    return create_run(out, config, catalogue, frames=frames or out / "frames", device="cpu", boxes=False)


def refused(told, *arguments, **options):
    with pytest.raises(ColocamError, match=told):
        begin(*arguments, **options)


def replace_bytes(video):
    """Another content with the same size and times."""
    status, data = video.stat(), bytearray(video.read_bytes())
    data[len(data) // 2] ^= 1
    video.write_bytes(data)
    os.utime(video, ns=(status.st_atime_ns, status.st_mtime_ns))


def files_of(clips):
    return [(clip.clip.name, clip.file.name, clip.frames.sum()) for clip in clips]


def test_the_same_videos_continue_and_changed_ones_do_not(project):
    before = (project / "runs" / "r" / "data.json").read_bytes()
    begin(project)
    assert (project / "runs" / "r" / "data.json").read_bytes() == before
    video = project / "data" / "videos" / "cat" / "train-0.mp4"
    replace_bytes(video)
    refused(r"different videos or boxes \(the content of .*cat/train-0\.mp4 has changed\)", project)
    video.unlink()
    video.mkdir()  # manifests name what exists; it cannot be read
    (video / "a.jpg").touch()
    refused(r"cat/train-0 has a different tag, split, video, time or number of images", project)


def test_another_tag_or_clip_is_named(project):
    manifest = project / "data" / "manifest.csv"
    text = manifest.read_text()
    manifest.write_text(text.replace("videos/cat/train-0.mp4,cat,", "videos/cat/train-0.mp4,owl,"))
    refused("cat/train-0 has a different tag", project)
    manifest.write_text("\n".join(line for line in text.splitlines() if "cat/train-0" not in line))
    refused("cat/train-0 is only there", project)


def test_a_clip_with_a_tag_that_the_run_does_not_have_is_damage(tmp_path):
    shutil.copytree(STORED / "run", tmp_path / "run")
    path = tmp_path / "run" / "data.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["clips"][0]["tag"] = "0.5"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ColocamError, match=r"data.json is damaged \(.* has the tag '0.5', which is not one of 'tags'"):
        read_data(tmp_path / "run")


@pytest.mark.parametrize("what", ["all", "run", "data"])
def test_what_was_moved_continues(project, what):
    frames = files_of(open_run(project / "runs" / "r", "cpu").clips("train", "val"))
    new = project.parent / "elsewhere" / "deeper"
    new.mkdir(parents=True)
    if what == "all":
        project, run = project.rename(new / "project"), new / "project" / "runs" / "r"
    elif what == "run":
        run = (project / "runs" / "r").rename(new / "r")
    else:
        run = project / "runs" / "r"
        (project / "data").rename(new / "data")
        project = new
    if what != "data":  # found without being told
        assert all(clip.path.is_file() for clip in open_run(run, "cpu").catalogue.clips)
    assert files_of(open_run(run, "cpu").clips("train", "val")) == frames
    begin(project, run)
    opened = open_run(run, "cpu")
    assert opened.frames == run / "frames"
    assert {clip.path for clip in opened.catalogue.clips} == set((project / "data" / "videos").rglob("*.mp4"))


def test_cached_frames_are_enough(project):
    run = open_run(project / "runs" / "r", "cpu")
    before = files_of(run.clips("test"))
    moved = shutil.copytree(run.folder, project.parent / "moved")
    shutil.rmtree(project)
    assert files_of(open_run(moved, "cpu").clips("test")) == before
    with pytest.raises(ColocamError, match="no clip can be read"):
        open_run(moved, "cpu").clips("train")


def test_frames_of_a_changed_video_are_not_decoded(project):
    replace_bytes(project / "data" / "videos" / "owl" / "test-0.mp4")
    run = open_run(project / "runs" / "r", "cpu")
    with pytest.raises(ColocamError, match=r"owl/test-0\.mp4 has changed since the run began: restore it"):
        run.clips("test")
    assert run.clips("train")


def test_a_shared_cache_never_gives_frames_of_a_replaced_video(project):
    """Of the same path, size and time."""
    cache, videos = project / "cache", project / "data" / "videos"
    first = files_of(begin(project, project / "a", frames=cache).clips("test"))
    status = (videos / "bus" / "test-0.mp4").stat()
    shutil.copy(videos / "owl" / "test-0.mp4", videos / "bus" / "test-0.mp4")
    with (videos / "bus" / "test-0.mp4").open("ab") as file:
        file.write(bytes(max(status.st_size - file.tell(), 0)))
    os.utime(videos / "bus" / "test-0.mp4", ns=(status.st_atime_ns, status.st_mtime_ns))
    second = files_of(begin(project, project / "b", frames=cache).clips("test"))
    assert first[0][1:] != second[0][1:]
    assert first[1:] == second[1:]


def test_a_folder_of_images_is_known_by_names_and_bytes(tmp_path):
    for name in ("cat/a/1.png", "cat/b/1.png", "dog/a/1.png", "dog/b/1.png"):
        (tmp_path / "data" / "videos" / name).parent.mkdir(parents=True)
        (tmp_path / "data" / "videos" / name).write_bytes(name.encode())
    begin(tmp_path, source="videos")
    (tmp_path / "data").rename(tmp_path / "moved")
    (tmp_path / "moved").rename(tmp_path / "data")
    begin(tmp_path, source="videos")
    stored = read_data(tmp_path / "runs" / "r").catalogue.clips[0]
    assert stored.frames == (tmp_path / "data" / "videos" / "cat" / "a" / "1.png",)
    image = tmp_path / "data" / "videos" / "dog" / "b" / "1.png"
    image.rename(image.with_name("2.png"))
    refused(r"the content of .*dog/b has changed", tmp_path, source="videos")


def test_the_run_of_version_0_1_0_opens_and_continues(tmp_path, monkeypatch):
    monkeypatch.chdir(STORED)
    run = tmp_path / "run"
    shutil.copytree("run", run)
    before = (run / "data.json").read_bytes()
    opened = open_run(run, "cpu")
    assert all(clip.path.is_file() for clip in opened.catalogue.of("test"))
    config = read_config(run / "config.yaml")
    create_run(run, config, opened.catalogue, frames=run / "frames", device="cpu", boxes=True)
    assert (run / "data.json").read_bytes() == before
    other = Catalogue(opened.catalogue.clips[1:], opened.catalogue.tags)
    with pytest.raises(ColocamError, match="different videos or boxes"):
        create_run(run, config, other, frames=run / "frames", device="cpu", boxes=True)


def test_frames_of_version_0_1_0_are_found_in_a_moved_run(project):
    run = project / "runs" / "r"
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    videos = project / "data" / "videos"
    data["clips"] = [{**clip, "path": str(videos / clip["path"])} for clip in data["clips"] if clip.pop("digest")]
    data |= {"frames": str(run / "frames")}
    del data["folders"]
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    before = files_of(open_run(run, "cpu").clips("test"))
    moved = run.rename(project / "moved")
    assert open_run(moved, "cpu").frames == moved / "frames"
    assert files_of(open_run(moved, "cpu").clips("test")) == before
    assert begin(project, moved).catalogue.clips[0].digest is None
