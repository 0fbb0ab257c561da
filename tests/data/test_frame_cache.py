"""The frame cache: right frames, decoded once, safe against interruption and bad files."""

import os
from dataclasses import replace

import cv2
import numpy as np
import pytest
from skimage.transform import downscale_local_mean

from colocam.data import frame_cache as cache_module
from colocam.data.frame_cache import cache_frames, clip_frames, resize_square
from colocam.errors import InterruptedRunError
from colocam.types import Clip
from colocam.video.fence import decode


def clip_of(path, tag="cat", split="train", **more):
    return Clip(f"{tag}/{path.stem}", tag, split, path, f"{tag}/{path.stem}", **more)


@pytest.fixture
def clips(tmp_path, make_video):
    """Two clips of two tags."""
    return [clip_of(make_video(tmp_path / f"{tag}.mp4", 12), tag) for tag in ("cat", "dog")]


@pytest.fixture
def decoded(monkeypatch):
    """Names of the files that were decoded."""
    names = []

    def spy(clip, **options):
        names.append(clip.path.name)
        return clip_frames(clip, **options)

    monkeypatch.setattr(cache_module, "clip_frames", spy)
    return names


def left_over(folder):
    return [path.name for path in folder.rglob("*") if path.name.startswith(".")]


def test_frames_are_the_videos_frames_and_decoded_once(tmp_path, clips, number_of, decoded):
    made, again = (cache_frames(clips, tmp_path / "cache", size=32) for _ in range(2))
    assert sorted(decoded) == ["cat.mp4", "dog.mp4"]
    for cached, clip in zip([*made, *again], clips * 2, strict=True):
        frames = list(decode(clip.path))
        assert cached.clip is clip
        assert len(cached) == 12
        assert cached.frames.shape == (12, 32, 32, 3)
        assert cached.frames.dtype == np.uint8
        assert np.array_equal(cached.frames, [resize_square(frame.image, 32) for frame in frames])
        assert cached.pts.tolist() == [frame.pts for frame in frames]
        assert cached.index.tolist() == list(range(12))
        assert cached.sizes.tolist() == [[64, 48]] * 12
        assert number_of(cached.frames[7]) == 7


def test_what_an_entry_depends_on(tmp_path, clips, make_video, decoded):
    def count(**options):
        before = len(decoded)
        cache_frames(clips, tmp_path / "cache", **{"size": 32, "max_frames": None} | options)
        return len(decoded) - before

    assert count() == 2
    assert count(size=16) == 2
    assert count(max_frames=6) == 2
    os.utime(clips[0].path, ns=(1, 1))
    assert count() == 1
    make_video(clips[0].path, 5)
    os.utime(clips[0].path, ns=(1, 1))
    assert count() == 1
    clips[0] = replace(clips[0], end=0.1)
    assert count() == 1
    assert count() == 0


def test_entries_that_do_not_fit_together_are_made_anew(tmp_path, clips, decoded):
    folder = tmp_path / "cache"
    whole = [np.array(cached.frames) for cached in cache_frames(clips, folder, size=32)]
    rgb, npy = sorted(folder.glob("*.rgb")), sorted(folder.glob("*.npy"))
    assert len(rgb) == len(npy) == 2
    os.truncate(rgb[0], 100)
    npy[1].write_bytes(b"not an array")
    again = cache_frames(clips, folder, size=32)
    assert len(decoded) == 4
    assert all(np.array_equal(a.frames, b) for a, b in zip(again, whole, strict=True))


@pytest.mark.parametrize("max_frames", [1, 2, 3, 5, 6, 11, 12, 13])
def test_at_most_so_many_frames_at_a_regular_stride(tmp_path, make_video, number_of, max_frames):
    clip = clip_of(make_video(tmp_path / "a.mp4", 12))
    (cached,) = cache_frames([clip], tmp_path / "cache", size=16, max_frames=max_frames)
    index = cached.index.tolist()
    stride = 12 if len(index) == 1 else index[1] - index[0]
    assert index == list(range(0, 12, stride))
    assert max_frames / 2 <= len(index) <= max_frames
    assert [number_of(frame) for frame in cached.frames] == index
    assert cached.pts.tolist() == [number / 25 for number in index]


def test_clips_of_one_file_share_one_pass(tmp_path, make_video, number_of, monkeypatch):
    path = make_video(tmp_path / "a.mp4", 50)
    passes = []
    monkeypatch.setattr(cache_module, "decode", lambda *a, **k: passes.append(k) or decode(*a, **k))
    ranges = [(0.0, 0.4), (0.2, 0.8), (0.8, 1.2), (1.2, 1.6)]
    clips = [replace(clip_of(path), name=f"{n}", start=a, end=b) for n, (a, b) in enumerate(ranges)]
    cached = cache_frames(clips, tmp_path / "cache", size=16)
    assert [entry.index.tolist() for entry in cached] == [
        list(range(round(start * 25), round(end * 25))) for start, end in ranges
    ]
    assert all([number_of(frame) for frame in entry.frames] == entry.index.tolist() for entry in cached)
    assert [(options["start"], options["end"]) for options in passes] == [(0.0, 1.6)]
    for clip, entry in zip(clips, cached, strict=True):
        (alone,) = cache_frames([clip], tmp_path / "other", size=16)
        assert np.array_equal(alone.frames, entry.frames)


def test_a_clip_beyond_the_end_of_its_file(tmp_path, make_video, capsys):
    path = make_video(tmp_path / "a.mp4", 30)
    clips = [clip_of(path), replace(clip_of(path), name="late", start=5.0, end=6.0)]
    assert [entry.clip.name for entry in cache_frames(clips, tmp_path / "cache", size=16)] == ["cat/a"]
    assert "skipped late: " in capsys.readouterr().err


def test_one_file_under_two_tags(tmp_path, make_video, decoded):
    path = make_video(tmp_path / "a.mp4", 6)
    cached = cache_frames([clip_of(path, "cat"), clip_of(path, "pet")], tmp_path / "cache", size=16)
    assert [entry.clip.tag for entry in cached] == ["cat", "pet"]
    assert decoded == ["a.mp4"]


def test_a_header_that_states_years_does_not_fill_the_disk(tmp_path, make_video):
    """By duration and rate alone, two frames four months apart would be 250 million frames."""
    video = make_video(tmp_path / "long.mkv", 2, times=[0.0, 1e7])
    (entry,) = cache_frames([clip_of(video)], tmp_path / "cache", size=256)
    assert entry.pts.tolist() == [0.0, 1e7]


def pictures(folder, sizes):
    folder.mkdir()
    for number, (width, height) in enumerate(sizes):
        cv2.imwrite(str(folder / f"{number}.png"), np.full((height, width, 3), (30, 20, 10 + number), np.uint8))
    return tuple(folder / f"{number}.png" for number in range(len(sizes)))


def test_pictures_of_mixed_sizes_and_a_corrupt_one(tmp_path, capsys):
    frames = pictures(tmp_path / "猫 '1'", [(64, 48), (30, 90), (16, 16), (200, 100), (5, 5)])
    frames[1].write_bytes(frames[1].read_bytes()[:40])
    frames[2].write_bytes(b"")
    clip = Clip("cat/p", "cat", "train", frames[0].parent, "cat/p", frames=frames)
    (cached,) = cache_frames([clip], tmp_path / "cache", size=16)
    assert cached.index.tolist() == [0, 3, 4]
    assert cached.pts.tolist() == [0.0, 3.0, 4.0]
    assert cached.sizes.tolist() == [[64, 48], [200, 100], [5, 5]]
    assert cached.frames[:, 8, 8].tolist() == [[10, 20, 30], [13, 20, 30], [14, 20, 30]]
    assert "2 of 5 images" in capsys.readouterr().err


def test_shots_in_one_folder_of_pictures(tmp_path):
    frames = pictures(tmp_path / "p", [(16, 16)] * 6)
    shots = [Clip(f"s{n}", "cat", "train", tmp_path / "p", "v", frames=frames[n : n + 3]) for n in (0, 3)]
    cached = cache_frames(shots, tmp_path / "cache", size=16)
    assert [entry.frames[:, 0, 0, 0].tolist() for entry in cached] == [[10, 11, 12], [13, 14, 15]]


@pytest.mark.parametrize(("width", "height"), [(8, 8), (4, 32), (32, 4), (64, 48), (1, 1), (8, 100), (3, 7)])
def test_resizing_keeps_the_mean_and_the_shape(width, height):
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    small = resize_square(image, 8)
    assert small.shape == (8, 8, 3)
    assert small.dtype == np.uint8
    if width % 8 == 0 and height % 8 == 0:
        mean = downscale_local_mean(image, (height // 8, width // 8, 1))
        assert np.abs(small - mean).max() <= 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, InterruptedRunError])
def test_an_interruption_keeps_what_is_done_and_leaves_nothing_half_made(
    tmp_path, make_video, monkeypatch, decoded, kind
):
    clips = [clip_of(make_video(tmp_path / f"{name}.mp4", 6)) for name in "abcd"]
    looks = iter([False] * 8)  # one each frame, so that it is asked for in the second file

    def stop_at_the_ninth_look(what):
        if next(looks, True):
            raise kind(f"stopped in {what}")

    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "raise_if_stopped", stop_at_the_ninth_look)
        with pytest.raises(kind, match="stopped in decoding"):
            cache_frames(clips, tmp_path / "cache", size=16, workers=1)
    assert left_over(tmp_path / "cache") == []
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".npy", ".rgb"]
    decoded.clear()
    resumed = cache_frames(clips, tmp_path / "cache", size=16, workers=1)
    assert sorted(decoded) == ["b.mp4", "c.mp4", "d.mp4"]
    fresh = cache_frames(clips, tmp_path / "fresh", size=16)
    assert all(np.array_equal(a.frames, b.frames) for a, b in zip(resumed, fresh, strict=True))
