"""Every export holds what the screen shows, frame by frame, after random corrections of a page."""

import csv
import io
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from colocam.serve.marks import ASKED, INTERPOLATED, PREDICTED
from tests.helpers.random_corrections import random_corrections
from tests.helpers.served_library import MovingBox, gray_video
from tests.helpers.served_page import served_page

COUNT, WIDTH, HEIGHT = 16, 64, 48
SCREEN = """
async () => {
  const view = window.colocam, { frame, results } = view.video;
  const rule = await import(document.querySelector("link[rel=modulepreload][href$='/marks.js']").href);
  await view.saving.refresh();
  const shown = ([number, own], at) => [rule.tagOf(own, results, at), rule.boxOf(own, results, at), String(number)];
  return frame.map((_, at) => [...view.objects.all].map((one) => shown(one, at)).filter(([, box]) => box));
}
"""


class SeemsToLeave(MovingBox):
    """Frames 5 to 9 have a box, though the model believes that nothing is there; frame 12 has none."""

    def stream(self, frames, *, images, **more):
        for frame, found in super().stream(frames, images=images, **more):
            nothing = {"box": None, "score": 0.0, "track": None, "mask": None} if frame.index == 12 else {}
            yield frame, replace(found, presence=0.1 if 5 <= frame.index <= 9 else 0.8, **nothing)


def of_csv(files):
    for row in csv.DictReader(io.StringIO(files["video.csv"].decode())):
        if row["x1"]:
            yield int(row["frame"]), row["class"], [float(row[side]) for side in ("x1", "y1", "x2", "y2")], row["track"]


def of_coco(files):
    content = json.loads(files["annotations/instances_default.json"])
    frames = {one["id"]: one["frame_index"] for one in content["images"]}
    names = {one["id"]: one["name"] for one in content["categories"]}
    for one in content["annotations"]:
        x, y, w, h = one["bbox"]
        yield frames[one["image_id"]], names[one["category_id"]], [x, y, x + w, y + h], one["track_id"]


def of_yolo(files):
    (listed,) = (data.decode() for name, data in files.items() if name.endswith("data.yaml"))
    names = dict(re.findall(r"^\s+(\d+):\s*['\"]?([\w ]+?)['\"]?$", listed, re.MULTILINE))
    for name, data in files.items():
        if number := re.search(r"_(\d{6})\.txt$", name):
            for line in data.decode().splitlines():
                tag, x, y, w, h = line.split()[:5]
                x, w, y, h = float(x) * WIDTH, float(w) * WIDTH, float(y) * HEIGHT, float(h) * HEIGHT
                yield int(number[1]), names[tag], [x - w / 2, y - h / 2, x + w / 2, y + h / 2], None


def of_voc(files):
    for name, data in files.items():
        if number := re.search(r"_(\d{6})\.xml$", name):
            for one in ET.fromstring(data).iter("object"):
                x1, y1, x2, y2 = (float(one.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
                yield int(number[1]), one.findtext("name"), [x1 - 1, y1 - 1, x2, y2], None  # whole pixels, from 1


def of_mot(files):
    text, names = (
        next(data.decode() for name, data in files.items() if name.endswith(end))
        for end in ("gt/gt.txt", "gt/labels.txt")
    )
    for line in text.splitlines():
        frame, track, x, y, w, h, _, number = map(float, line.split(",")[:8])
        tag = names.splitlines()[int(number) - 1]
        yield int(frame) - 1, tag, [x - 1, y - 1, x - 1 + w, y - 1 + h], int(track)


def between(keys, tag, track):
    """The boxes of a track of key frames: frame → (box, seen, seen up to the next one)."""
    order = sorted(keys)
    for frame, after in zip(order, [*order[1:], COUNT], strict=True):
        box, seen, goes_on = keys[frame]
        if not seen:
            continue
        yield frame, tag, box, track
        for at in range(frame + 1, after if goes_on else frame):
            last = keys[after][0] if after in keys and keys[after][1] else box
            share = (at - frame) / (after - frame)
            yield at, tag, [a + share * (b - a) for a, b in zip(box, last, strict=True)], track


def of_cvat(files):
    (text,) = (data for name, data in files.items() if name.endswith(".xml"))
    for track in ET.fromstring(text).iter("track"):
        keys = {}
        for one in track.iter("box"):
            seen = one.get("outside") == "0"
            keys[int(one.get("frame"))] = [float(one.get(side)) for side in ("xtl", "ytl", "xbr", "ybr")], seen, seen
        yield from between(keys, track.get("label"), track.get("id"))


def of_label_studio(files):
    (task,) = json.loads(files["tasks.json"])
    for region in task["predictions"][0]["result"]:
        keys = {}
        for one in region["value"]["sequence"]:
            x, w, y, h = (
                one[name] * side / 100 for name, side in zip(["x", "width", "y", "height"], SIDES, strict=True)
            )
            keys[one["frame"] - 1] = [x, y, x + w, y + h], True, one["enabled"]
        (tag,) = region["value"]["labels"]
        yield from between(keys, tag, region["id"])


SIDES = (WIDTH, WIDTH, HEIGHT, HEIGHT)
FORMATS = {
    "csv": (of_csv, 0.02),
    "coco": (of_coco, 0.02),
    "yolo": (of_yolo, 0.02),
    "voc": (of_voc, 0.52),
    "mot": (of_mot, 0.02),
    "cvat": (of_cvat, 1.02),
    "label-studio": (of_label_studio, 1.02),
}


ONE_CLASS = ("mot", "cvat", "label-studio")


def compare(screen, labels, within, *, why, one_class=False):
    """Each box of the screen is in the labels of its frame, and no other one; a track is an object of the screen."""
    found = defaultdict(list)
    for frame, tag, box, track in labels:
        found[frame].append((tag, box, track))
    tags = defaultdict(Counter)
    for shown in screen:
        for tag, _, number in shown:
            tags[number][tag] += 1
    tracks = set()
    for frame, shown in enumerate(screen):
        left = found.pop(frame, [])
        assert len(left) == len(shown), (why, frame, shown, left)
        for tag, box, number in shown:
            most = max(tags[number].values())
            allowed = {name for name, count in tags[number].items() if count == most} if one_class else {tag}
            far = [np.abs(np.subtract(box, other)).max() + 99 * (name not in allowed) for name, other, _ in left]
            nearest = int(np.argmin(far))
            assert far[nearest] <= within, (why, frame, tag, box, left)
            tracks.add((number, left.pop(nearest)[2]))
    assert not found, why
    if None not in (track for _, track in tracks):
        assert len(tracks) == len(tags) == len({track for _, track in tracks}), (why, tracks)


def screen_of(one, video=None):
    """What the page shows of a video: a list of class, box and number of object for each frame."""
    one.open(video)
    one.page.evaluate("window.colocam.renew()")
    return one.page.evaluate(SCREEN)


def correct_randomly(server, rng, most=6):
    """Send random corrections of the server's video; an undo of nothing is refused, here as on a page."""
    for correction in random_corrections(rng, COUNT, most=most):
        server.post(correction)
        server.wait()


@pytest.mark.parametrize("instances", [False, True])
def test_every_export_holds_what_the_screen_shows(make_video, tmp_path, page, instances):
    path = gray_video(make_video, tmp_path / "video.mp4", range(60, 60 + COUNT))
    with served_page(page, tmp_path / "page", [path], model=SeemsToLeave) as one:
        one.server.client.post("/api/settings", json={"instances": instances})
        one.server.wait()
        for seed in range(6):
            correct_randomly(one.server, np.random.default_rng(seed))
            screen = screen_of(one)
            for to, (labels, within) in FORMATS.items():
                found = labels(one.server.exported(to))
                compare(screen, found, within, one_class=to in ONE_CLASS, why=f"seed {seed}, {to}")


def test_frames_that_are_left_out_are_those_of_the_screen(make_video, tmp_path, page):
    path = gray_video(make_video, tmp_path / "video.mp4", range(60, 60 + COUNT))
    with served_page(page, tmp_path / "page", [path], model=SeemsToLeave) as one:
        for seed in range(4):
            correct_randomly(one.server, np.random.default_rng(seed))
            one.server.edit(kind="box", start=seed, stop=seed + 1, box=[3, 4, 23, 24])
            screen = screen_of(one)
            known = one.page.evaluate("[...window.colocam.states]")
            for leave_out, states in {
                "unchecked": {PREDICTED},
                "interpolated": set(INTERPOLATED),
                "asked": {ASKED},
            }.items():
                kept = [[] if state in states else shown for state, shown in zip(known, screen, strict=True)]
                for to in ("csv", "coco", "mot"):
                    labels, within = FORMATS[to]
                    found = labels(one.server.exported(to, leave_out=[leave_out]))
                    compare(kept, found, within, one_class=to in ONE_CLASS, why=f"seed {seed}, {to}, {leave_out}")


def test_an_export_of_several_videos_keeps_them_apart(make_video, tmp_path, page):
    names = [f"{at}.mp4" for at in range(4)]
    paths = [
        gray_video(make_video, tmp_path / name, range(60 + 30 * at, 60 + 30 * at + COUNT))
        for at, name in enumerate(names)
    ]
    with served_page(page, tmp_path / "page", paths, model=SeemsToLeave) as one:
        screens = {}
        for seed, video in enumerate(one.library.videos()):
            one.server.video = video.id
            correct_randomly(one.server, np.random.default_rng(seed))
            screens[video.name] = screen_of(one, video.id)
        coco = json.loads(one.server.exported("coco")["annotations/instances_default.json"])
        numbers = {video["id"]: video["name"] for video in coco["videos"]}
        tracks = {track["id"]: track["video_id"] for track in coco["tracks"]}
        video_of = {image["id"]: image["video_id"] for image in coco["images"]}
        assert all(
            video_of[one["image_id"]] == one["video_id"] == tracks[one["track_id"]] for one in coco["annotations"]
        )
        yolo = one.server.exported("yolo")
        mot = one.server.exported("mot")
        splits = defaultdict(list)
        for name, screen in screens.items():
            own = {
                key: [row for row in coco[key] if numbers[row["video_id"]] == name] for key in ("images", "annotations")
            }
            of_video = json.dumps({**own, "categories": coco["categories"]})
            compare(screen, of_coco({"annotations/instances_default.json": of_video}), 0.02, why=f"coco, {name}")
            files = {path: data for path, data in yolo.items() if f"/{name}_" in path and path.startswith("labels/")}
            splits[{path.split("/")[1] for path in files}.pop()].append(name)
            assert len({path.split("/")[1] for path in files}) == 1  # all its frames are in one split
            compare(screen, of_yolo({**files, "data.yaml": yolo["data.yaml"]}), 0.02, why=f"yolo, {name}")
            files = {path: data for path, data in mot.items() if path.startswith(f"{name}/")}
            compare(screen, of_mot(files), 0.02, one_class=True, why=f"mot, {name}")
        assert {split: len(own) for split, own in splits.items()} == {"train": 2, "val": 1, "test": 1}
        made = one.server.client.post("/api/exports", json={"to": "yolo"}).json()
        assert made["notes"] == ["split by video: 2 train, 1 val, 1 test"]
