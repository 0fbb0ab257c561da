"""Files, pipes, cameras and addresses: what they are called, how they are opened, what is told when they are not."""

import gc
import os
import threading

import av
import pytest

from colocam.errors import ColocamError
from colocam.video.fence import decode, estimate_frames, probe
from colocam.video.input import UnreadableError, VideoInput
from colocam.video.reader import VideoReader

PATTERN = "testsrc=size=64x48:rate=25:duration=1"


def test_names(tmp_path, make_video):
    video = make_video(tmp_path / "a video.v2.mp4", 2)
    kinds = {
        "-": ("stdin", False, False),
        str(video): ("a video.v2", True, False),
        str(tmp_path / "missing.mkv"): ("missing", False, False),
        "rtsp://camera.example:554/stream1?user=a": ("stream1", False, True),
        "http://example.org/videos/new.mp4": ("new", False, False),
        "udp://239.0.0.1:1234": ("239.0.0.1", False, True),
        "/dev/null": ("null", False, True),
        str(tmp_path): (tmp_path.name, True, False),
    }
    for address, (stem, stored, live) in kinds.items():
        source = VideoInput(address)
        assert (source.stem, source.is_stored, source.live) == (stem, stored, live), address
    camera = VideoInput("video=Integrated Camera", "dshow")
    assert (camera.stem, camera.path, camera.live) == ("video_Integrated_Camera", None, True)
    assert VideoInput("/dev/video0", "v4l2").live


def test_a_format_of_ffmpeg_is_used():
    with VideoReader(VideoInput(PATTERN, "lavfi")) as reader:
        frames = list(reader.frames())
    assert (reader.info.width, reader.info.height, reader.info.fps) == (64, 48, 25)
    assert [frame.index for frame in frames] == list(range(25))
    assert reader.ended
    assert reader.count == 25


@pytest.mark.parametrize(
    ("address", "kind", "told"),
    [
        ("x", "nonsense", "format nonsense: FFmpeg knows no such format"),
        ("no-such-filter=", "lavfi", "cannot read no-such-filter=: not as format lavfi"),
        ("foo://bar", None, "cannot read foo://bar: "),
        ("/dev/null", None, "cannot read /dev/null: "),
        ("/dev/video99", None, "cannot read /dev/video99: there is no such file"),
    ],
)
def test_what_cannot_be_opened_is_told_in_one_line(address, kind, told):
    with pytest.raises(ColocamError) as error:
        list(decode(VideoInput(address, kind)))
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)


def test_a_named_pipe(tmp_path, make_video, number_of):
    """It can be opened once only, and it has no size."""
    data = make_video(tmp_path / "video.ts", 12).read_bytes()
    pipe = tmp_path / "pipe.ts"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(data))
    writer.start()
    found = [number_of(frame.image) for frame in decode(pipe)]
    writer.join()
    assert found == list(range(12))
    assert not VideoInput(str(pipe)).is_stored


def test_an_unknown_codec_is_named(tmp_path, make_video):
    video = make_video(tmp_path / "unknown.mp4", 5)
    video.write_bytes(video.read_bytes().replace(b"avc1", b"zzzz"))
    for read in (probe, estimate_frames, lambda path: list(decode(path))):
        with pytest.raises(UnreadableError, match=r"unknown\.mp4: FFmpeg has no decoder for its codec: convert it"):
            read(video)


def test_image2_is_no_traceback(tmp_path, make_video):
    video = make_video(tmp_path / "video.mp4", 5)
    with pytest.raises(UnreadableError, match=r"video\.mp4"):
        list(decode(VideoInput(str(video), "image2")))


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("loop.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nloop.m3u8\n", "hls"),
        ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nvideo.ts\n#EXT-X-ENDLIST\n", "hls"),
        ("list.txt", "ffconcat version 1.0\nfile video.ts\n", "concat"),
        ("list.sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\n", "sdp"),
    ],
)
def test_a_stored_playlist_is_read_only_when_its_format_is_given(tmp_path, make_video, name, text, format):  # noqa: A002 - FFmpeg's word
    make_video(tmp_path / "video.ts", 5)
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableError, match=f"it is a playlist, .* set `format` to {format} if you trust it"):
        list(decode(tmp_path / name))
    if name.startswith("list") and format != "sdp":
        assert len(list(decode(VideoInput(str(tmp_path / name), format)))) == 5


def test_what_must_be_stored_is_no_pipe(tmp_path):
    """A pipe without a writer would block for ever."""
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(UnreadableError, match=r"pipe\.mp4: it is a pipe or a device: name it alone"):
        list(decode(VideoInput(str(tmp_path / "pipe.mp4"), must_be_stored=True)))
    with pytest.raises(UnreadableError, match=r"pipe\.mp4: it is a pipe or a device"):
        estimate_frames(tmp_path / "pipe.mp4")


def test_too_many_pixels_are_refused_by_the_header(tmp_path):
    (tmp_path / "large.y4m").write_bytes(b"YUV4MPEG2 W14000 H14000 F25:1 Ip A1:1 C420\nFRAME\n" + bytes(9999))
    with pytest.raises(UnreadableError, match=r"large\.y4m: 14000×14000 pixels, the limit is 134 million: scale it"):
        probe(tmp_path / "large.y4m")


def test_a_terminal_is_no_pipe(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(ColocamError, match=r"^'-' is a video from a pipe: cat VIDEO \| colocam localize RUN - -o OUT$"):
        next(decode(VideoInput("-")))


def test_decoded_pictures_do_not_wait_for_the_garbage_collector(tmp_path, make_video):
    """A frame that is let go is freed at once; 4K frames would fill the memory before a collection."""
    video = make_video(tmp_path / "video.mp4", 50)
    gc.collect()
    gc.disable()
    try:
        with VideoReader(video) as reader:
            assert sum(1 for _ in reader.frames()) == 50
            held = sum(type(one) is av.VideoFrame for one in gc.get_objects())
    finally:
        gc.enable()
    assert held <= 3


def test_texts_in_any_encoding_do_not_matter(make_video, tmp_path):
    """A title in Latin-1 must not stop a batch."""
    video = make_video(tmp_path / "video.mp4", 3)
    video.write_bytes(video.read_bytes().replace(b"Lavf", b"\xe4\xff\xfe\xe4"))
    assert len(list(decode(video))) == 3
