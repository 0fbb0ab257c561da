"""A trained model on video files: a localization for every frame, and the files made of them."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from pyarrow import csv
from safetensors.torch import load_file, save_file
from scipy.special import expit

from colocam.boxes import largest_boxes, to_8bit
from colocam.cams import extract
from colocam.errors import ColocamError
from colocam.evaluation.metrics import steadiness
from colocam.inference import Localizer
from colocam.inference.localize import localize_file
from colocam.inference.network import completed
from colocam.inference.passes import Passes
from colocam.maps.postprocess import postprocess
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.models.model_file import load_model
from colocam.temporal.presence import FIRST, LIMIT, ZERO_OF_FRAME
from colocam.types import VideoFrame
from colocam.video.fence import decode, probe
from tests.helpers.one_pass import one_pass

SIDE = 32


@pytest.fixture
def video(tmp_path, make_video, square_video):
    return make_video(tmp_path / "video.mp4", square_video("cat", 77, 20, (80, 60))[0])


@pytest.fixture
def broken(trained, tmp_path):
    """A copy of the model's own two files, to be damaged."""
    folder = tmp_path / "broken"
    folder.mkdir()
    for name in ("model.json", "model.safetensors"):
        shutil.copy(trained / name, folder)
    return folder


def test_it_says_what_the_network_says(trained, video):
    """Against the network built by hand from the two files, one frame at a time."""
    card = json.loads((trained / "model.json").read_text(encoding="utf-8"))
    net = LocalizerNet(Classifier(load_model(trained).card.backbone, 3), tuple(card["decoder"]))
    net.load_state_dict(load_file(trained / "model.safetensors"))
    net.eval()
    found = list(Localizer.load(trained, smooth="none")(video))
    assert len(found) == 20
    for frame, one in zip(decode(video), found, strict=True):
        picture = cv2.resize(frame.image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        with torch.no_grad():
            logits, map_logits, peaks, _ = net(torch.from_numpy(picture).permute(2, 0, 1)[None])
        probabilities, heat = logits[0].softmax(0), map_logits[0].softmax(0)[1].numpy()
        assert one.tag == card["tags"][int(probabilities.argmax())]
        slope, offset = card["presence"]
        sure = np.sort((255 * heat).astype(int).flatten())[-(3 * SIDE**2 // 1000) :].mean() / 255
        nothing = np.exp(ZERO_OF_FRAME) * (1 - sure) / sure
        against = np.exp(-np.clip(slope * float(peaks.max()) + offset, -LIMIT, LIMIT)) + nothing
        assert one.presence == pytest.approx(expit(-np.log(against) + np.log(FIRST / (1 - FIRST))), abs=2e-3)
        of_peaks = (slope * peaks[0].double()).softmax(0)[probabilities.argmax()]
        assert one.probability == pytest.approx(min(float(probabilities.max()), float(of_peaks)), abs=1e-4)
        assert one.shot_probability is None
        np.testing.assert_allclose(one.heatmap, heat, atol=1e-5)
        (box,), (there,) = largest_boxes(one.heatmap[None], card["threshold"])
        assert there == (one.box is not None)
        if one.box is not None:
            np.testing.assert_allclose(one.box, box * np.array([80, 60, 80, 60]) / SIDE, atol=1e-4)
            x1, y1, x2, y2 = box.astype(int)
            assert one.score == pytest.approx(heat[y1 : y2 + 1, x1 : x2 + 1].mean(), abs=1e-5)
    assert any(one.box is not None for one in found)


@pytest.mark.parametrize("batch", [1, 4])
def test_only_a_batch_is_waited_for(trained, video, batch):
    """The source gives no further frame before the first answer is there; without one this would not end."""
    answered = threading.Event()

    def slow():
        for frame in decode(video):
            if frame.index == batch:
                answered.wait()
            yield frame

    stream = Localizer.load(trained, batch=batch, smooth="online").stream(slow())
    frame, found = next(stream)
    assert (frame.index, found.frame) == (0, 0)
    answered.set()
    assert [found.frame for _, found in stream] == list(range(1, 20))


def test_a_camera_waits_for_no_further_frame(trained, video):
    """Each answer comes before the next frame does."""
    told = threading.Semaphore(1)

    def camera():
        for frame in decode(video):
            told.acquire()
            yield frame

    for number, (_, found) in enumerate(Localizer.load(trained, smooth="online").stream(camera(), live=True)):
        assert found.frame == number
        told.release()
    assert number == 19


class Changed:
    """A network whose outputs are changed by a function of images and output."""

    on_gpu = False

    def __init__(self, passes, change, rows):
        self.network, self.change, self.rows = passes._network, change, rows

    def submit(self, images, ids):
        (image,) = images
        return completed(self.change(image, self.network.submit(images, ids).result()))


def changed(passes, change, rows=None):
    return Passes(Changed(passes, change, rows or passes.rows), passes.shape)


def test_errors_of_the_network_and_of_the_source_are_raised(trained, video):
    localizer = Localizer.load(trained, batch=4)
    one_pass(localizer.network, np.zeros((2, SIDE, SIDE, 3), np.uint8))  # the networks' threads stay
    before = set(threading.enumerate())

    def broken(_images, _output):
        raise RuntimeError("out of memory")

    localizer.network = changed(localizer.network, broken)
    with pytest.raises(RuntimeError, match="out of memory"):
        list(localizer(video))

    def gone():
        yield from islice(decode(video), 6)
        raise ColocamError("the camera is gone")

    with pytest.raises(ColocamError, match="the camera is gone"):
        list(Localizer.load(trained, batch=2).stream(gone()))
    assert not set(threading.enumerate()) - before


def test_chosen_frames_keep_their_numbers_and_times(trained, tmp_path, make_video, square_video):
    times = [1.5, 1.54, 1.62, 1.7, 2.0, 2.5, 2.52, 3.0]
    video = make_video(tmp_path / "vfr.mkv", square_video("owl", 1, 8)[0], times=times)
    localizer = Localizer.load(trained, smooth="none")
    whole = {one.frame: one for one in localizer(video)}
    for chosen, numbers in (
        ({"every": 3}, [0, 3, 6]),
        ({"fps": 2}, [0, 4, 5, 7]),
        ({"start": 1.62, "end": 2.5}, [2, 3, 4]),
        ({"frames": (5, None)}, [5, 6, 7]),
    ):
        found = list(localizer(video, **chosen))
        assert [one.frame for one in found] == numbers
        for one in found:
            assert one.pts == pytest.approx(times[one.frame], abs=1e-9)
            np.testing.assert_allclose(one.heatmap, whole[one.frame].heatmap, atol=1e-5)
    with pytest.raises(ColocamError, match="batch must be 1 or more frames, got 0"):
        Localizer.load(trained, batch=0)


def test_a_map_without_foreground_has_no_box(broken, video):
    """A card whose threshold is the maximum leaves no pixel above it."""
    card = json.loads((broken / "model.json").read_text(encoding="utf-8"))
    (broken / "model.json").write_text(json.dumps({**card, "threshold": 1.0}), encoding="utf-8")
    for one in Localizer.load(broken)(video):
        assert one.box is None
        assert one.score == 0


def test_each_method_has_a_model(trained, video):
    first, second = (next(Localizer.load(folder)(video)) for folder in (trained, trained / "fcam"))
    assert Localizer.load(trained).card.method == "colocam"
    assert Localizer.load(trained / "fcam").card.method == "fcam"
    assert first.probability == second.probability
    assert not np.allclose(first.heatmap, second.heatmap)


def test_models_that_cannot_be_opened(broken, tmp_path):
    def complaint():
        with pytest.raises(ColocamError) as error:
            Localizer.load(broken)
        assert "\n" not in str(error.value)
        return str(error.value)

    card, weights = broken / "model.json", broken / "model.safetensors"
    good_card, good_weights = card.read_text(encoding="utf-8"), weights.read_bytes()
    damaged = f"{weights} is missing or damaged: train again or restore the file"
    weights.write_bytes(good_weights[: len(good_weights) // 2])
    assert complaint() == damaged
    weights.write_bytes(b"")
    assert complaint() == damaged
    weights.unlink()
    assert complaint() == damaged
    tensors = load_file(_write(tmp_path / "good.safetensors", good_weights))
    tensors.pop(min(tensors))
    save_file(tensors, weights)
    assert f"{card} does not fit model.safetensors: 'classifier" in complaint()
    card.write_text(good_card.replace('"format": 2', '"format": 99'), encoding="utf-8")
    assert "has format 99, this colocam reads 2" in complaint()
    for text in ("{}", "not json", good_card.replace('"tags"', '"labels"')):
        card.write_text(text, encoding="utf-8")
        assert complaint() == f"{card} is not a colocam model card: train again or restore the file"
    card.unlink()
    assert complaint() == f"no trained model in {broken} (model.json is missing): finish 'colocam train' first"


def _write(path, content):
    path.write_bytes(content)
    return path


def test_devices(trained):
    with pytest.raises(ColocamError, match="device must be cpu or cuda, got gpu"):
        Localizer.load(trained, device="gpu")
    with pytest.raises(ColocamError, match="device must be cpu or cuda, got mps"):
        Localizer.load(trained, device="mps")
    assert not Localizer.load(trained, device="cpu").network.on_gpu


@pytest.mark.parametrize("table", ["csv", "parquet"])
def test_files_of_a_video(trained, tmp_path, make_video, square_video, table):
    times = [0.5, 0.6, 0.62, 1.5, 1.6]
    video = make_video(tmp_path / "in put.mkv", square_video("owl", 3, 5, (50, 38))[0], times=times)
    annotated, rows = localize_file(trained, video, tmp_path / "a" / "b", table=table)
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {
        f"in put.{table}",
        "in put.mp4",
        "in put.video.json",
    }
    drawn = list(decode(annotated))
    assert (probe(annotated).width, probe(annotated).height) == (50, 38)
    assert [frame.pts for frame in drawn] == pytest.approx(times, abs=2e-5)
    changed = [np.abs(a.image.astype(int) - b.image).mean() for a, b in zip(drawn, decode(video), strict=True)]
    assert min(changed) > 10  # heat, box and label are drawn on each; coding alone changes 3
    read = pq.read_table(rows) if table == "parquet" else csv.read_csv(rows)
    assert ",".join(read.column_names) == "frame,pts,class,probability,x1,y1,x2,y2,score,track,presence,margin"
    for row, one in zip(read.to_pylist(), Localizer.load(trained)(video), strict=True):
        numbers = (one.score, one.track, one.presence, one.margin)
        assert tuple(row.values()) == (one.frame, one.pts, one.tag, one.probability, *(one.box or [None] * 4), *numbers)


def test_the_input_is_never_overwritten(trained, video, tmp_path):
    before = video.read_bytes()
    (tmp_path / "link").symlink_to(video.parent)
    for out in (video.parent, tmp_path / "link", video.parent / "x" / ".."):
        with pytest.raises(ColocamError, match="would overwrite the video itself: choose another output folder"):
            localize_file(trained, video, out)
    assert video.read_bytes() == before
    assert not (video.parent / "video.csv").exists()


def test_a_truncated_video_gives_what_is_left_of_it(trained, tmp_path, make_video, square_video):
    video = make_video(tmp_path / "cut.mkv", square_video("cat", 1, 20)[0], options={"g": "1"})
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    left = len(list(decode(video)))
    assert 2 < left < 18
    annotated, rows = localize_file(trained, video, tmp_path / "out")
    assert len(list(decode(annotated))) == left
    assert len(rows.read_text(encoding="utf-8").splitlines()) == left + 1


def test_outputs_that_cannot_be_written(trained, video, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ColocamError, match=f"cannot write {out}: there is a file where a folder is needed"):
            localize_file(trained, video, out)
    with pytest.raises(ColocamError, match="table must be csv or parquet, got xlsx"):
        localize_file(trained, video, tmp_path / "out", table="xlsx")
    assert not (tmp_path / "out").exists()


def test_masks_are_outlines_of_the_boxes_in_original_pixels(trained, video):
    """A scaled outline lies in its scaled box, give or take one map pixel, and fills it from edge to edge."""
    plain = list(Localizer.load(trained, smooth="none")(video))
    assert all(one.mask is None for one in plain)
    found = list(Localizer.load(trained, masks=True, smooth="none")(video))
    assert [one.box for one in found] == [one.box for one in plain]
    seen = [one for one in found if one.box is not None]
    assert seen
    for one in seen:
        assert one.mask.shape == (60, 80)
        assert one.mask.dtype == bool
        rows, columns = np.flatnonzero(one.mask.any(1)), np.flatnonzero(one.mask.any(0))
        outline = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
        np.testing.assert_array_less(np.abs(np.subtract(outline, one.box)), np.array([80, 60, 80, 60]) / SIDE + 1)


@pytest.mark.parametrize("smooth", ["offline", "online"])
def test_steady_boxes_of_a_video_of_two_shots(trained, tmp_path, make_video, square_video, smooth):
    pictures = square_video("cat", 1, 12, (80, 60))[0] + [255 - p for p in square_video("owl", 2, 12, (80, 60))[0]]
    video = make_video(tmp_path / "cut.mkv", pictures, codec="ffv1", pix_fmt="bgr0")
    plain = list(Localizer.load(trained, smooth="none")(video))
    found = list(Localizer.load(trained, smooth=smooth, masks=True)(video))
    assert [(one.frame, one.pts) for one in found] == [(one.frame, one.pts) for one in plain]
    if smooth == "offline":
        assert all(len({one.tag for one in part}) == 1 for part in (found[:12], found[12:]))
    assert [one.track for one in plain] == [None] * 24
    first, second = ({one.track for one in part} - {None} for part in (found[:12], found[12:]))
    assert first
    assert second
    assert not first & second
    for one in found:
        assert (one.box is None) == (one.track is None)
        if one.box is not None:
            assert 0 <= one.box.x1 < one.box.x2 <= 80
            assert 0 <= one.box.y1 < one.box.y2 <= 60
            assert 0 < one.score <= 1
        assert one.mask is None or one.box is not None
    boxes = [np.array([one.box or (np.nan,) * 4 for one in part]) for part in (plain, found)]
    before, after = (steadiness([part], [np.arange(24) == 12]) for part in boxes)
    assert after.jitter <= before.jitter + 1e-9
    assert after.shifts <= before.shifts


def test_ways_of_smoothing_are_checked(trained, colocam, video, tmp_path):
    error = colocam("localize", trained, video, "-o", tmp_path / "out", "--smooth", "offlin").error
    assert error == "error: --smooth offlin: did you mean 'offline'?"
    assert colocam("localize", trained, video, "-o", tmp_path / "out", "--smooth", "none").code == 0
    header = (tmp_path / "out" / "video.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.endswith("y2,score,presence,margin")


def test_presence_hides_boxes_and_a_known_tag_is_believed(trained, video):
    card = load_model(trained).card
    assert card.presence is not None
    plain = list(Localizer.load(trained)(video))
    assert all(0 <= one.presence <= 1 for one in plain)
    bound = sorted(one.presence for one in plain)[10]
    hidden = list(Localizer.load(trained, presence=bound)(video))
    for one, two in zip(plain, hidden, strict=True):
        assert one.presence == two.presence
        assert two.box == (one.box if one.presence >= bound else None)
        assert (two.track is None) == (two.box is None)
        assert (two.score == 0) == (two.box is None)
    assert any(one.box is not None for one in hidden)
    known = list(Localizer.load(trained, tag="owl")(video))
    assert {one.tag for one in known} == {"owl"}
    assert [one.box for one in known] == [one.box for one in plain]
    for one, two in zip(plain, known, strict=True):
        assert two.probability <= one.probability + 1e-6


def test_presence_and_tags_are_checked(trained):
    with pytest.raises(ColocamError, match=r"^tag cta: the model does not know this tag: did you mean 'cat'\?"):
        Localizer.load(trained, tag="cta")
    with pytest.raises(ColocamError, match=r"^presence must be in 0–1, got 1\.5"):
        Localizer.load(trained, presence=1.5)
    with pytest.raises(ColocamError, match="color_mean clips: did you mean 'clip'"):
        Localizer.load(trained, color_mean="clips")


def test_a_model_without_calibration_does_not_pretend_to_have_presences(broken, video):
    card = json.loads((broken / "model.json").read_text(encoding="utf-8"))
    del card["presence"]
    (broken / "model.json").write_text(json.dumps(card), encoding="utf-8")
    assert {one.presence for one in Localizer.load(broken, smooth="online")(video)} == {None}
    with pytest.raises(ColocamError, match="presence cannot be used: this model has no calibration of presence"):
        Localizer.load(broken, presence=0.5)


@pytest.mark.parametrize("smooth", ["offline", "none"])
def test_maps_may_come_as_8_bit_levels(trained, video, smooth):
    """As from a GPU: the boxes are the same, the heat-map is within half a level, and gives the same levels again."""
    localizer = Localizer.load(trained, smooth=smooth)
    floats, network = list(localizer(video)), localizer.network

    localizer.network = changed(network, lambda _, output: output._replace(maps=to_8bit(output.maps)))
    for one, two in zip(floats, localizer(video), strict=True):
        assert (one.box, one.tag, one.track, one.margin) == (two.box, two.tag, two.track, two.margin)
        assert two.heatmap.dtype == np.float32
        assert np.abs(one.heatmap - two.heatmap).max() <= 0.5 / 255 + 1e-6
        assert two.score == pytest.approx(one.score, abs=0.5 / 255 + 1e-6)
        np.testing.assert_array_equal(to_8bit(one.heatmap), to_8bit(two.heatmap))


@pytest.mark.parametrize(("name", "on", "off"), [("color_mean", "frame", "off"), ("focus", True, False)])
def test_the_model_says_how_its_maps_are_completed(broken, video, name, on, off):
    card = json.loads((broken / "model.json").read_text(encoding="utf-8"))
    (broken / "model.json").write_text(json.dumps({**card, name: on}), encoding="utf-8")
    own, told, plain = (
        list(Localizer.load(broken, smooth="none", **asked)(video)) for asked in ({}, {name: on}, {name: off})
    )
    for one, two in zip(own, told, strict=True):
        np.testing.assert_array_equal(one.heatmap, two.heatmap)
    assert max(np.abs(one.heatmap - two.heatmap).max() for one, two in zip(own, plain, strict=True)) > 1e-3


@pytest.mark.parametrize("number", [None, 0, 1])
def test_maps_are_focused_on_the_tag_or_on_what_the_frame_shows(trained, video, number):
    """Against the maps and CAMs of the network, finished here."""
    tag = None if number is None else Localizer.load(trained).tags[number]
    localizer = Localizer.load(trained, smooth="none", focus=True, batch=20, tag=tag)
    heat = np.stack([one.heatmap for one in localizer(video)])
    net = load_model(trained).net
    pictures = np.stack([cv2.resize(f.image, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for f in decode(video)])
    with torch.inference_mode():
        frames = torch.from_numpy(pictures).permute(0, 3, 1, 2)
        seen = net(frames)
        best = seen.class_logits.argmax(1)
        classes = best if number is None else torch.full_like(best, number)
        cams = extract("layercam", net.classifier, frames, classes)
        want = postprocess(frames, foreground(seen.map_logits), None, cams).numpy()
    np.testing.assert_allclose(heat, want, atol=1e-4)


@pytest.mark.parametrize("refine", [False, True])
def test_threads_may_share_a_localizer(trained, square_video, box_segmenter_files, refine):
    localizer = Localizer.load(trained, "cpu", refine=box_segmenter_files if refine else None)
    videos = [
        [VideoFrame(index, index / 25, image) for index, image in enumerate(square_video(tag, seed, 40 + seed)[0])]
        for seed, tag in enumerate(("bus", "cat", "owl", "cat"))
    ]

    def localize(frames):
        return [(found.tag, found.probability, found.box, found.score) for _, found in localizer.stream(frames)]

    alone = [localize(frames) for frames in videos]
    with ThreadPoolExecutor(len(videos)) as pool:
        assert list(pool.map(localize, videos)) == alone
