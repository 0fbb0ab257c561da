"""Tables with their videos' descriptions, and random scenes of boxes for the round trips."""

import csv
import json
import tempfile
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from hypothesis import strategies as st

from colocam.labels import Options, export
from colocam.labels.labeled_videos import read_videos
from colocam.labels.table import COLUMNS, OPTIONAL

TAGS = ["cat", "кошка", "猫 & co", "<dog>", 'it\'s a "bird"', "a,b; c", "#1 %d"]
WIDTH, HEIGHT, FRAMES = 97, 71, 40


def write_table(
    path, rows, *, size=(WIDTH, HEIGHT), fps="25", frames=FRAMES, duration=None, video="clip one.mp4", pictures=()
):
    """Write rows (dicts; missing cells stay empty) and the description of their video."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS + OPTIONAL)
        writer.writeheader()
        writer.writerows(rows)
    rate = float(Fraction(fps))
    card = {"format": 1, "path": str(path.parent / video), "width": size[0], "height": size[1], "fps": fps}
    card |= {"frames": frames, "duration": duration or frames / rate}
    card |= {"pictures": list(pictures)} if pictures else {}
    path.with_name(f"{path.stem}.video.json").write_text(json.dumps(card), encoding="utf-8")
    return path


def row(frame, box=None, tag="cat", track="", **more):
    corners = dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)) if box is not None else {}
    return {"frame": frame, "pts": frame / 25, "class": tag, "track": track, **corners, **more}


@contextmanager
def exported(rows, to, *, options=None, **source):
    """Export rows to a format in a temporary folder; gives the folder and the video as read."""
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder) / "clip one.csv", rows, **source)
        out = export([table], to, Path(folder) / "out", options=options or Options())
        yield out, read_videos([table], [])[0]


@st.composite
def scenes(draw, *, tracked=True):
    """Rows of up to three objects that jump, touch the edges and go away; frames without any, or not listed."""
    step = draw(st.sampled_from([1, 1, 2, 5]))
    listed = list(range(draw(st.integers(0, 3)), FRAMES, step))
    tags = draw(st.lists(st.sampled_from(TAGS), min_size=1, max_size=3, unique=not tracked))
    rows = []
    x, y = (st.floats(0, side, width=32).map(lambda value: round(value, 3)) for side in (WIDTH, HEIGHT))
    for number, tag in enumerate(tags):
        boxes = {}
        for frame in listed:
            if draw(st.booleans()):
                (x1, x2), (y1, y2) = sorted([draw(x), draw(x)]), sorted([draw(y), draw(y)])
                if x2 - x1 >= 0.01 and y2 - y1 >= 0.01:
                    boxes[frame] = (x1, y1, x2, y2)
            elif boxes and draw(st.booleans()):
                boxes[frame] = list(boxes.values())[-1]
        rows += [row(frame, box, tag, number if tracked else "") for frame, box in boxes.items()]
    rows += [row(frame, None, tags[0]) for frame in listed if not any(one["frame"] == frame for one in rows)]
    if not any("x1" in one for one in rows):
        rows.append(row(listed[0], (0, 0, WIDTH, HEIGHT), tags[0]))
    return draw(st.permutations(rows)) if len(rows) < 20 else rows
