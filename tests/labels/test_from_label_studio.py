"""Label Studio's JSON export, checked against its own expansion of key frames."""

import json

import numpy as np
import pytest
from label_studio_tools.postprocessing.video import extract_key_frames

from colocam.errors import ColocamError
from colocam.labels import import_labels
from tests.helpers.label_scenes import row, write_table


def key_frame(frame, box, *, enabled=True, size=(97, 71), fps=25):
    x1, y1, x2, y2 = box
    width, height = size
    shape = {"x": x1 / width * 100, "y": y1 / height * 100}
    shape |= {"width": (x2 - x1) / width * 100, "height": (y2 - y1) / height * 100}
    return {"frame": frame, "enabled": enabled, "rotation": 0, "time": frame / fps, **shape}


def region(*keys, label="cat", frames=40, duration=1.6):
    value = {"framesCount": frames, "duration": duration, "sequence": list(keys), "labels": [label]}
    names = {"id": "K7xv", "from_name": "box", "to_name": "video", "type": "videorectangle", "origin": "manual"}
    return {"value": value, "meta": {}, **names}


def task(*regions, video="/data/upload/3/1a2b3c4d-video.mp4", data=None, **annotation):
    made = {"id": 11, "completed_by": 1, "result": list(regions), "was_cancelled": False, "ground_truth": False}
    made |= {"created_at": "2026-11-01T10:00:00.0Z", "updated_at": "2026-11-01T10:05:00.0Z", "lead_time": 9.1}
    facts = {"id": 5, "annotations": [made | annotation], "file_upload": "1a2b3c4d-video.mp4", "drafts": []}
    return facts | {"predictions": [], "data": {"video": video, **(data or {})}, "meta": {}, "project": 3}


def written(path, *tasks):
    path.write_text(json.dumps(list(tasks)), encoding="utf-8")
    return path


def test_frames_count_from_one_and_an_object_ends_after_its_key_frame(tmp_path, table, brief):
    one = region(
        key_frame(1, (10, 20, 50, 60)),
        key_frame(11, (18, 20, 50, 60)),
        key_frame(21, (10, 20, 50, 60), enabled=False),
        key_frame(26, (10, 20, 50, 60)),
        key_frame(30, (10, 20, 50, 60), enabled=False),
    )
    found = import_labels(written(tmp_path / "a.json", task(one)), "label-studio", tables=[table])
    told = brief(found.corrections)
    assert list(told) == list(range(40))
    for frame, shown in _expanded(one).items():
        kind, *boxes, _ = told[frame]
        assert kind in {"accepted", "box"}
        np.testing.assert_allclose(boxes, [shown], atol=1e-9)
    assert [frame for frame, one in told.items() if one[0] == "none"] == [21, 22, 23, 24]
    assert [frame for frame, one in told.items() if one[0] == "box" and one[-1]] == [10]
    assert told[29][0] == told[30][0] == "accepted"


def _expanded(one):
    """Frame from 0 → corners, as Label Studio's own code expands a region."""
    (whole,) = extract_key_frames([one])
    return {
        key["frame"] - 1: np.array([key["x"], key["y"], key["x"] + key["width"], key["y"] + key["height"]])
        / 100
        * (97, 71, 97, 71)
        for key in whole["value"]["sequence"]
    }


def test_a_player_of_another_rate_shows_frames_by_time(tmp_path, table, brief):
    """Without a stated rate Label Studio counts 24 frames a second, also in a video of 25."""
    one = region(key_frame(1, (10, 20, 50, 60), fps=24), key_frame(25, (30, 20, 70, 60), fps=24), frames=38)
    found = import_labels(written(tmp_path / "a.json", task(one, data={"fps": 24})), "label-studio", tables=[table])
    told = brief(found.corrections)
    assert not found.left_out
    assert told[25] == ("box", pytest.approx((30, 20, 70, 60)), True)  # frame 24 of the player begins at 1 s
    assert told[39][1][0] == pytest.approx(30)


def test_a_video_of_variable_rate(tmp_path, brief):
    times = [0.5, 0.51, 0.52, 0.7, 1.5, 1.54]
    rows = [row(i, (i, 0, i + 10, 10), pts=time) for i, time in enumerate(times)]
    table = write_table(tmp_path / "video.csv", rows, frames=6, duration=1.08)
    keys = [key_frame(1, (1, 0, 11, 10)), key_frame(2, (2, 0, 12, 10)), key_frame(9, (60, 0, 70, 10))]
    keys += [key_frame(26, (4, 0, 14, 10)), key_frame(27, (5, 0, 15, 10))]
    one = region(*keys, frames=27, duration=1.08)
    found = import_labels(
        written(tmp_path / "a.json", task(one, video="clip one.mp4", data={"fps": 25})), "label-studio", tables=[table]
    )
    told = brief(found.corrections)
    assert told[3] == ("box", pytest.approx((60, 0, 70, 10)), True)  # frame 3 is shown from 0.2 to 1 s, key 9 in it
    assert {frame: one[0] for frame, one in told.items() if frame != 3} == dict.fromkeys([1, 2, 4, 5], "accepted")


def test_the_last_annotation_counts_and_skipped_tasks_do_not(tmp_path, table, brief):
    old, new = region(key_frame(1, (1, 2, 3, 4))), region(key_frame(1, (5, 6, 7, 8), enabled=False))
    both = task(new)
    both["annotations"].append({"id": 3, "result": [old], "updated_at": "2026-10-01T10:05:00.0Z"})
    skipped, empty = task(old, was_cancelled=True), task(old)
    empty["annotations"] = []
    found = import_labels(written(tmp_path / "a.json", both, skipped, empty), "label-studio", tables=[table])
    assert brief(found.corrections)[0] == ("box", pytest.approx((5, 6, 7, 8)), True)
    assert dict(found.left_out) == {
        "annotation of a task that has a later one": 1,
        "task of Label Studio that nobody annotated": 2,
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (task(region(key_frame(1, (1, 2, 3, 4))), video="s3://bucket/a/other.mp4"), "'other.mp4': no table"),
        (task(region(key_frame(1, (1, 2, 3, 4)), frames=80, duration=3.2)), "it has 80 frames, video has 40"),
        (task(region(key_frame(1, (1, 2, 3, 4)), label="cow")), "class 'cow' is unknown"),
        (task(region(key_frame(1, (1, 2, 3, 4)) | {"rotation": 12})), "rotated box of class 'cat'"),
        (task({"type": "choices"}, {"type": "brushlabels"}), "region of type 'brushlabels'"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, table, changed, reason):
    found = import_labels(written(tmp_path / "a.json", changed), "label-studio", tables=[table])
    assert reason in next(iter(found.left_out))
    assert "none" not in {one.kind for one in found.corrections}


def test_images_of_a_folder(tmp_path, brief):
    names = [f"猫 {number}.png" for number in range(3)]
    rows = [row(frame, (10, 20, 50, 60)) for frame in range(3)]
    table = write_table(tmp_path / "pets.csv", rows, video="my pets", frames=3, pictures=names)
    box = {"x": 0, "y": 50, "width": 50, "height": 50, "rotation": 0, "rectanglelabels": ["cat"]}
    drawn = {"type": "rectanglelabels", "original_width": 97, "original_height": 71, "value": box}
    tasks = [
        {"data": {"image": f"/data/local-files/?d=my%20pets/%E7%8C%AB%20{n}.png"}, "annotations": [{"result": own}]}
        for n, own in ((0, [drawn]), (2, []))
    ]
    told = brief(import_labels(written(tmp_path / "a.json", *tasks), "label-studio", tables=[table]).corrections)
    assert told == {0: ("box", (0, 35.5, 48.5, 71), True), 2: ("none", True)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "must be a list of objects"),
        ('[{"video": "a.mp4", "box": []}]', "not as 'JSON-MIN'"),
        (json.dumps([task(region(key_frame(0, (1, 2, 3, 4))))]), "count from 1"),
        (json.dumps([task(region(key_frame(1, (1, 2, 3, 4)) | {"x": None}))]), "x must be a number"),
        (json.dumps([task(region(key_frame(1, (1, 2, 3, 4)), frames=None))]), "add 'fps'"),
        (json.dumps([task(region(key_frame(1, (1, 2, 3, 4))))]), "name `tables`"),  # percent of an unknown size
    ],
)
def test_another_file_is_refused(tmp_path, table, text, told):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ColocamError, match=told):
        import_labels(path, "label-studio", tables=[] if "tables" in told else [table])
