"""The command: a folder that is whole or not there, pictures of the listed frames, one line for what is wrong."""

import cv2
import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.labels import FORMATS, Options, export
from colocam.labels.labeled_videos import read_videos
from colocam.video.fence import decode
from tests.helpers.label_scenes import row, write_table


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_from_a_video_to_every_format(colocam, trained, tmp_path, make_video, square_video):
    """localize with masks, then all formats by the command line, twice; the second time gives the same bytes."""
    video = make_video(tmp_path / "a 'b' & c.mkv", square_video("owl", 3, 6, (50, 38))[0], fps=30)
    assert colocam("localize", trained, video, "-o", tmp_path / "boxes", "--masks").code == 0
    table = tmp_path / "boxes" / "a 'b' & c.csv"
    (read,) = read_videos([table], [])
    assert (read.source.width, read.source.height, read.source.frames, read.source.fps) == (50, 38, 6, 30)
    assert read.source.path == video
    assert len(read.objects) > 0
    assert all(read.rows.mask[row] for row in read.objects)
    for to in FORMATS:
        out = tmp_path / "out" / to
        command = ["export", table, "--to", to, "-o", out, *(["--images"] if FORMATS[to].images else [])]
        outcome = colocam(*command)
        assert outcome.code == 0, outcome.err
        assert f"wrote {out}" in outcome.err
        first = files(out)
        assert len([name for name in first if name.endswith(".jpg")]) == (6 if FORMATS[to].images else 0)
        assert colocam(*command).code == 0
        assert files(out) == first
        assert sorted(path.name for path in out.parent.iterdir() if path.name.startswith(".")) == []


def test_pictures_are_the_listed_frames_of_the_video(tmp_path, make_video, numbered, number_of):
    video = make_video(tmp_path / "video.mp4", numbered(12))
    rows = [row(frame, (1, 2, 30, 40)) for frame in (3, 7, 11)]
    table = write_table(tmp_path / "video.csv", rows, size=(64, 48), frames=12, video="video.mp4")
    out = export([table], "mot", tmp_path / "out", options=Options(images=True))
    images = {path.name: cv2.imread(str(path)) for path in (out / "video" / "img1").iterdir()}
    assert sorted(images) == ["000004.jpg", "000008.jpg", "000012.jpg"]
    original = {frame.index: frame.image for frame in decode(video)}
    for name, image in images.items():
        frame = int(name[:6]) - 1
        assert number_of(image) == frame
        assert np.abs(image[..., ::-1].astype(int) - original[frame]).max() <= 3


def test_colors_and_orientation_of_pictures(tmp_path, make_video, quadrants):
    make_video(tmp_path / "video.mp4", [quadrants()] * 2, pix_fmt="yuv444p", rotation=90)
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 30, 40))], size=(48, 64), frames=2, video="video.mp4")
    out = export([table], "coco", tmp_path / "out", options=Options(images=True))
    picture = cv2.imread(str(out / "images" / "a_000000.jpg"))[..., ::-1].astype(int)
    shown = next(decode(tmp_path / "video.mp4")).image
    assert picture.shape == (64, 48, 3)
    assert np.abs(picture - shown).mean() < 6


def test_pictures_that_cannot_be_had(video, tmp_path, make_video):
    options = Options(images=True)

    def refused(videos=()):
        with pytest.raises(ColocamError) as error:
            export([video], "coco", tmp_path / "out", videos=videos, options=options)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".*"))
        return str(error.value)

    with pytest.raises(ColocamError, match="images cannot be written for 'cvat': only for coco, yolo"):
        export([video], "cvat", tmp_path / "out", options=options)
    moved = video.with_suffix(".mp4").rename(tmp_path / "elsewhere.mp4")
    assert "images need the video, but " in refused()
    assert "my video.mp4 does not exist: name it with `videos`" in refused()
    export([video], "coco", tmp_path / "fine", videos=[moved], options=options)
    make_video(video.with_suffix(".mp4"), 12, (80, 48))
    assert "my video.mp4 is 80×48, but the table is of a video of 64×48: name the right one with `videos`" in refused()
    make_video(video.with_suffix(".mp4"), 9)
    assert "my video.mp4 has no frame 9, which my video lists: name the right video with `videos`" in refused()


@pytest.mark.parametrize(
    ("problem", "told", "says"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt, None),
        (OSError(28, "No space left on device"), ColocamError, "cannot write .*out: the disk is full"),
    ],
)
def test_an_interrupted_export_leaves_what_was_there(video, tmp_path, monkeypatch, problem, told, says):
    out = export([video], "voc", tmp_path / "out")
    before = files(out)

    def stop(*words):
        whole.write(*words)
        raise problem

    whole = FORMATS["coco"]
    monkeypatch.setitem(FORMATS, "coco", whole._replace(write=stop))
    with pytest.raises(told, match=says):
        export([video], "coco", out)
    assert files(out) == before
    assert not list(tmp_path.glob(".*"))


def test_what_is_wrong_with_the_command(colocam, video, tmp_path):
    base = ["export", video, "-o", tmp_path / "out", "--to"]
    assert "error: --to must be a label format, got 'csw': did you mean 'csv'?" in colocam(*base, "csw").error
    assert "--tolerance must be 0 or more pixels, got -1.0" in colocam(*base, "cvat", "--tolerance", "-1").error
    assert "--tolerance must be 0 or more pixels, got nan" in colocam(*base, "cvat", "--tolerance", "nan").error
    nothing = write_table(tmp_path / "nothing.csv", [row(0), row(1)])
    assert (
        "nothing.csv: no row has a box, so there is nothing to export"
        in colocam("export", nothing, "--to", "coco", "-o", tmp_path / "out").error
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["coco", "cvat", "label-studio", "mot", "fiftyone"])
def test_one_of_several_videos_may_be_empty(tmp_path, to):
    tables = [write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4))]), write_table(tmp_path / "b.csv", [row(0)])]
    assert export(tables, to, tmp_path / "out").is_dir()
