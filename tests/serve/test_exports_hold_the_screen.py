"""Every export holds what the screen shows, frame by frame, after random corrections of a page."""

import csv
import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.helpers.random_corrections import random_corrections
from tests.helpers.served_library import MovingBox, gray_video
from tests.helpers.served_page import served_page

COUNT, WIDTH, HEIGHT = 16, 64, 48
SCREEN = """
async () => {
  const view = window.colocam, { frame, results } = view.video;
  const rule = await import(document.querySelector("link[rel=modulepreload][href$='/marks.js']").href);
  await view.saving.refresh();
  const shown = (marks, at) => [rule.tagOf(marks, results, at), rule.boxOf(marks, results, at)];
  return frame.map((_, at) => [...view.objects.all.values()].map((marks) => shown(marks, at)).filter(([, box]) => box));
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
            yield int(row["frame"]), row["class"], [float(row[side]) for side in ("x1", "y1", "x2", "y2")]


def of_coco(files):
    content = json.loads(files["annotations/instances_default.json"])
    frames = {one["id"]: one["frame_index"] for one in content["images"]}
    names = {one["id"]: one["name"] for one in content["categories"]}
    for one in content["annotations"]:
        x, y, w, h = one["bbox"]
        yield frames[one["image_id"]], names[one["category_id"]], [x, y, x + w, y + h]


def of_yolo(files):
    (listed,) = (data.decode() for name, data in files.items() if name.endswith("data.yaml"))
    names = dict(re.findall(r"^\s+(\d+):\s*['\"]?([\w ]+?)['\"]?$", listed, re.MULTILINE))
    for name, data in files.items():
        if number := re.search(r"_(\d{6})\.txt$", name):
            for line in data.decode().splitlines():
                tag, x, y, w, h = line.split()[:5]
                x, w, y, h = float(x) * WIDTH, float(w) * WIDTH, float(y) * HEIGHT, float(h) * HEIGHT
                yield int(number[1]), names[tag], [x - w / 2, y - h / 2, x + w / 2, y + h / 2]


def of_voc(files):
    for name, data in files.items():
        if number := re.search(r"_(\d{6})\.xml$", name):
            for one in ET.fromstring(data).iter("object"):
                x1, y1, x2, y2 = (float(one.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
                yield int(number[1]), one.findtext("name"), [x1 - 1, y1 - 1, x2, y2]  # whole pixels, from 1


def of_mot(files):
    (text,) = (data.decode() for name, data in files.items() if name.endswith("gt/gt.txt"))
    for line in text.splitlines():
        frame, _, x, y, w, h = map(float, line.split(",")[:6])
        yield int(frame) - 1, "", [x - 1, y - 1, x - 1 + w, y - 1 + h]


def between(keys):
    """The boxes of a track of key frames: frame → (box, seen, seen up to the next one)."""
    order = sorted(keys)
    for frame, after in zip(order, [*order[1:], COUNT], strict=True):
        box, seen, goes_on = keys[frame]
        if not seen:
            continue
        yield frame, "", box
        for at in range(frame + 1, after if goes_on else frame):
            last = keys[after][0] if after in keys and keys[after][1] else box
            share = (at - frame) / (after - frame)
            yield at, "", [a + share * (b - a) for a, b in zip(box, last, strict=True)]


def of_cvat(files):
    (text,) = (data for name, data in files.items() if name.endswith(".xml"))
    for track in ET.fromstring(text).iter("track"):
        keys = {}
        for one in track.iter("box"):
            seen = one.get("outside") == "0"
            keys[int(one.get("frame"))] = [float(one.get(side)) for side in ("xtl", "ytl", "xbr", "ybr")], seen, seen
        yield from between(keys)


def of_label_studio(files):
    (task,) = json.loads(files["tasks.json"])
    for region in task["predictions"][0]["result"]:
        keys = {}
        for one in region["value"]["sequence"]:
            x, w, y, h = (
                one[name] * side / 100 for name, side in zip(["x", "width", "y", "height"], SIDES, strict=True)
            )
            keys[one["frame"] - 1] = [x, y, x + w, y + h], True, one["enabled"]
        yield from between(keys)


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


def compare(screen, labels, within, *, classes, why):
    """Each box of the screen is in the labels of its frame, and no other one."""
    found = defaultdict(list)
    for frame, tag, box in labels:
        found[frame].append((tag, box))
    for frame, shown in enumerate(screen):
        left = found.pop(frame, [])
        assert len(left) == len(shown), (why, frame, shown, left)
        for tag, box in shown:
            far = [np.abs(np.subtract(box, other)).max() + (classes and tag != name) * 99 for name, other in left]
            nearest = int(np.argmin(far))
            assert far[nearest] <= within, (why, frame, tag, box, left)
            left.pop(nearest)
    assert not found, why


@pytest.mark.parametrize("instances", [False, True])
def test_every_export_holds_what_the_screen_shows(make_video, tmp_path, page, instances):
    path = gray_video(make_video, tmp_path / "video.mp4", range(60, 60 + COUNT))
    with served_page(page, tmp_path / "page", [path], model=SeemsToLeave) as one:
        one.server.client.post("/api/settings", json={"instances": instances})
        one.server.wait()
        one.open()
        for seed in range(6):
            rng = np.random.default_rng(seed)
            for correction in random_corrections(rng, COUNT, most=6):
                one.server.post(correction)  # an undo of nothing is refused, here as on a page
                one.server.wait()
            one.page.evaluate("window.colocam.renew()")
            screen = one.page.evaluate(SCREEN)
            for to, (labels, within) in FORMATS.items():
                files = one.server.exported(to)
                classes = to in {"csv", "coco", "yolo", "voc"}
                compare(screen, labels(files), within, classes=classes, why=f"seed {seed}, {to}")
