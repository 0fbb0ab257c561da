"""Videos are decoded in a process of their own: same frames, and a decoder that fails costs one video."""

import gc
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.errors import ArgumentError, ColocamError
from colocam.inference.localize import Writing, localize_videos
from colocam.video import fence, reader
from colocam.video.decoder_child import Limits
from colocam.video.fence import end_decoders
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import MOST_SLOTS, FrameLayout
from colocam.video.images import image_frames
from colocam.video.input import UnreadableError, VideoInput
from tests.helpers.child_processes import alive, children
from tests.helpers.hostile_decoder import HOSTILE, make_hostile

QUICK = Limits(open_seconds=30.0, frame_seconds=1.0)

ENDINGS = {
    "hangs": "its decoder gave no frame for 0.5 s and was ended",
    "hangs in compiled code": "its decoder gave no frame for 0.5 s and was ended",
    "crashes": r"its decoder crashed \(signal SIGSEGV\)",
    "aborts": r"its decoder crashed \(signal SIGABRT\)",
    "leaves": r"its decoder crashed \(exit code 7\)",
    "allocates": "its decoder took more memory than frames of its size need and was ended",
    "fails": r"its decoder failed \(ZeroDivisionError: division by zero\)",
}


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Do something in the next decoder process when it comes to frame 3 of a file named ``hostile…``."""

    def install(work):
        make_hostile(tmp_path / "patch", work)
        end_decoders()
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patch"))

    yield install
    end_decoders()


def same(one, other):
    """Whether two readings give the same frames, to the last bit."""
    return len(one) == len(other) and all(
        (a.index, a.pts, a.image.shape) == (b.index, b.pts, b.image.shape) and np.array_equal(a.image, b.image)
        for a, b in zip(one, other, strict=True)
    )


def plainly(video):
    """The frames, read in this process."""
    with reader.VideoReader(video) as opened:
        yield from opened.frames()


def test_relative_names_follow_the_working_folder(tmp_path, make_video, monkeypatch):
    """A decoder is kept for the next video; the folder may have changed in between."""
    for name, count in (("first", 3), ("second", 5)):
        make_video(tmp_path / name / "video.mp4", count)
    for name, count in (("first", 3), ("second", 5)):
        monkeypatch.chdir(tmp_path / name)
        assert len(list(fence.decode(Path("video.mp4")))) == count


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def all_decoders():
    return children("decoder_child")


@pytest.fixture
def decoders():
    """Decoder processes that this process has more than before; other tests import colocam anew and keep theirs."""
    end_decoders()
    before = set(all_decoders())
    return lambda: [one for one in all_decoders() if one not in before]


@pytest.mark.parametrize(
    "choice",
    [
        FrameChoice(),
        FrameChoice(every=7),
        FrameChoice(fps=3.0),
        FrameChoice(frames=(5, 9)),
        FrameChoice(start=0.5, end=1),
    ],
    ids=str,
)
def test_frames_and_counts_are_those_of_the_reader(make_video, tmp_path, choice):
    video = make_video(tmp_path / "video.mp4", 40)
    with reader.VideoReader(video) as plain, fence.FencedReader(video) as fenced:
        assert (fenced.info, fenced.start, fenced.total) == (plain.info, plain.start, plain.total)
        assert fenced.estimate(choice) == plain.estimate(choice)
        assert same(list(fenced.frames(choice)), list(plain.frames(choice)))
        assert (fenced.count, fenced.ended, fenced.pictures) == (plain.count, plain.ended, ())


def test_frames_stay_what_they_are_whoever_keeps_them(make_video, tmp_path, decoders):
    """More frames are kept than there are slots, of two videos, one after the other by the same decoder."""
    end_decoders()
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (MOST_SLOTS + 30, 48, 64, 3), np.uint8)
    videos = [make_video(tmp_path / "a.mp4", images), make_video(tmp_path / "b.mp4", images[::-1])]
    kept = [list(fence.decode(video)) for video in videos]
    some = [frame for frame in fence.decode(videos[0]) if frame.index % 3 == 0]
    del kept[0][::2]
    gc.collect()
    again = list(fence.decode(videos[1]))
    first, second = (list(plainly(video)) for video in videos)
    for frames, plain in ((kept[0], first), (kept[1], second), (some, first), (again, second)):
        assert same(frames, [plain[one.index] for one in frames])
    assert len(decoders()) == 1


@pytest.mark.parametrize("images", [False, True])
def test_frames_are_resized_by_area_and_images_are_given_where_asked_for(make_video, tmp_path, images):
    video = make_video(tmp_path / "video.mp4", 5)
    with fence.FencedReader(video) as fenced:
        frames = list(fenced.frames(layout=FrameLayout(32, images=images)))
    for frame, plain in zip(frames, plainly(video), strict=True):
        assert np.array_equal(frame.resized, cv2.resize(plain.image, (32, 32), interpolation=cv2.INTER_AREA))
        assert np.array_equal(frame.image, plain.image if images else np.zeros_like(plain.image))


def test_images_of_several_sizes_and_damaged_ones(tmp_path, capsys):
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for number, path in enumerate(paths):
        cv2.imwrite(str(path), random.integers(0, 256, (40 * (number + 1), 50, 3), np.uint8))
    paths[2].write_bytes(b"no image")
    assert same(list(fence.decode_images(paths)), list(image_frames(paths)))
    assert np.array_equal(fence.read_image(paths[1]), next(image_frames(paths[1:])).image)
    assert fence.read_image(paths[2]) is None
    bomb = b"P6 60000 60000 255\n"
    paths[3].write_bytes(bomb)
    paths[3].rename(tmp_path / "3.ppm")
    list(fence.decode_images([paths[0], tmp_path / "3.ppm"]))
    said = capsys.readouterr().err
    list(image_frames([paths[0], tmp_path / "3.ppm"]))
    assert said == capsys.readouterr().err
    assert said.startswith("warning: cannot read ")


@pytest.mark.parametrize("content", [b"", b"not a video", b"#EXTM3U\nx.mp4"])
def test_errors_are_those_of_the_reader(tmp_path, content):
    video = tmp_path / "video.mp4"
    video.write_bytes(content)
    with pytest.raises(UnreadableError) as plain:
        next(plainly(video))
    for read in (fence.probe, fence.estimate_frames):
        with pytest.raises(UnreadableError) as fenced:
            read(video)
        assert str(fenced.value) == str(plain.value)
    with pytest.raises(ArgumentError, match="format nonsense: FFmpeg knows no such format"):
        fence.FencedReader(VideoInput(__file__, "nonsense")).__enter__()


@pytest.mark.parametrize("what", HOSTILE)
def test_a_decoder_that_fails_costs_one_video(make_video, tmp_path, hostile, what, decoders):
    """The frames before are given, the error names the video, and the next video is read."""
    bad, good = make_video(tmp_path / "hostile.mp4", 12), make_video(tmp_path / "good.mp4", 12)
    hostile(HOSTILE[what])
    limits = Limits(open_seconds=30.0, frame_seconds=0.5 if "hangs" in what else 30.0, memory=2**28)
    seen = []
    with pytest.raises(UnreadableError, match=f"cannot read {bad}: {ENDINGS[what]}"):
        seen.extend(fence.decode(bad, limits=limits))
    assert len(seen) <= 3
    assert same(list(fence.decode(good)), list(plainly(good)))
    assert len(decoders()) == 1


def test_a_frame_does_not_wait_for_the_next_ones_where_one_is_decoded_at_once(make_video, tmp_path, hostile):
    """The decoder ends at frame 3: the frames before it have come one by one, and stay what they are."""
    video, seen = make_video(tmp_path / "hostile.mp4", 12), []
    hostile(HOSTILE["leaves"])
    with pytest.raises(UnreadableError, match="crashed"):
        seen.extend(fence.decode(video, limits=Limits(ahead=1)))
    assert same(seen, list(plainly(video))[:3])


def test_a_batch_goes_round_a_video_whose_decoder_crashes(make_video, square_video, tmp_path, hostile, capsys):
    videos = [make_video(tmp_path / f"{name}.mp4", square_video("cat", 1, 9)[0]) for name in ("hostile", "good")]
    hostile(HOSTILE["crashes"])
    model = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx"
    done = localize_videos(model, videos, tmp_path / "out", Writing(annotate=False))
    assert next(done).table == tmp_path / "out" / "good.csv"
    with pytest.raises(ColocamError, match="1 of 2 videos cannot be read, see the warnings; the others are done"):
        next(done)
    assert f"warning: cannot read {videos[0]}: its decoder crashed (signal SIGSEGV)" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").glob("*.csv")] == ["good.csv"]


def test_frames_that_are_skipped_count_as_work(make_video, tmp_path, hostile):
    """Each frame takes less than the limit, all of them together more."""
    video = make_video(tmp_path / "video.mp4", 12)
    hostile("pass")
    patch = tmp_path / "patch" / "sitecustomize.py"
    slow = (
        "counted = reader.VideoReader._counted\n"
        "def slowly(self):\n"
        "    for one in counted(self):\n"
        "        time.sleep(0.12)\n"
        "        yield one\n"
        "reader.VideoReader._counted = slowly\n"
    )
    patch.write_text(patch.read_text(encoding="utf-8") + slow, encoding="utf-8")
    assert [one.index for one in fence.decode(video, choice=FrameChoice(every=11), limits=QUICK)] == [0, 11]


def test_too_many_frames_are_refused_by_the_header_or_when_they_come(make_video, tmp_path):
    video, limits = make_video(tmp_path / "video.mp4", 12), Limits(frames=8)
    with pytest.raises(UnreadableError, match="it has 12 frames or more, the limit is 8: cut it into parts"):
        fence.probe(video, limits=limits)
    stream = make_video(tmp_path / "video.ts", 12)  # its header states no number
    seen = []
    with pytest.raises(UnreadableError, match="it has 9 frames or more, the limit is 8"):
        seen.extend(fence.decode(stream, limits=limits))
    assert [one.index for one in seen] == list(range(8))


def test_a_video_that_needs_more_memory_than_its_limit_loses_no_frames_silently(make_video, tmp_path):
    """Either all frames, or an error: short memory is no damage, which would be skipped."""
    video = make_video(tmp_path / "video.mp4", [np.zeros((1080, 1920, 3), np.uint8)] * 3)
    for mebibytes in (4, 16, 48):
        with suppress(UnreadableError):
            assert len(list(fence.decode(video, limits=Limits(memory=mebibytes * 2**20)))) == 3
    assert len(list(fence.decode(video))) == 3


def test_a_reader_that_is_left_early_leaves_a_decoder_that_works(make_video, tmp_path, decoders):
    video = make_video(tmp_path / "video.mp4", 40)
    end_decoders()

    def fail():
        with fence.FencedReader(video) as fenced:
            for _ in fenced.frames():
                raise ColocamError("enough")

    for _ in range(3):
        with pytest.raises(ColocamError, match="enough"):
            fail()
    assert next(fence.decode(video)).index == 0
    assert len(decoders()) == 1
    end_decoders()
    assert decoders() == []


def test_a_decoder_ends_when_its_parent_is_killed_whatever_it_does(make_video, tmp_path, hostile):
    """Also while compiled code holds the interpreter's lock."""
    video, hung = make_video(tmp_path / "hostile.mp4", 12), tmp_path / "hung"
    hostile(f"open({str(hung)!r}, 'w').write(str(os.getpid())); {HOSTILE['hangs in compiled code']}")
    script = f"from pathlib import Path; from colocam.video.fence import decode; list(decode(Path({str(video)!r})))"
    parent = subprocess.Popen([sys.executable, "-c", script])
    try:
        wait_for(lambda: hung.exists() and hung.read_text(encoding="ascii"))
    finally:
        parent.kill()
        parent.wait()
    decoder = int(hung.read_text(encoding="ascii"))
    wait_for(lambda: not alive(decoder))


def test_a_decoder_prints_nothing_of_what_libjpeg_thinks(tmp_path, capfd):
    end_decoders()  # a new one has the stderr of this test
    data = cv2.imencode(".jpg", np.zeros((40, 48, 3), np.uint8))[1]
    data[11] = 3  # JFIF of version 3
    (tmp_path / "0.jpg").write_bytes(data.tobytes())
    assert fence.read_image(tmp_path / "0.jpg").shape == (40, 48, 3)
    assert capfd.readouterr().err == ""
