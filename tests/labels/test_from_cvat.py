"""CVAT's XML, written as CVAT writes it: every frame of a track, key frames marked, two decimals."""

from itertools import zip_longest

import pytest

from colocam.labels import import_labels
from tests.helpers.label_scenes import row, write_table

META = """<meta><task><id>7</id><name>my task</name><size>{size}</size><mode>interpolation</mode><overlap>5</overlap>
<bugtracker></bugtracker><created>2026-11-01 10:00:00.000000+00:00</created><subset>default</subset>
<start_frame>{start}</start_frame><stop_frame>{stop}</stop_frame><frame_filter>{step}</frame_filter>
<segments><segment><id>7</id><start>0</start><stop>39</stop><url>http://localhost:8080/api/jobs/7</url></segment>
</segments><owner><username>a</username><email></email></owner><assignee></assignee>
<labels><label><name>cat</name><color>#ff0000</color><type>any</type><attributes></attributes></label></labels>
<original_size><width>{width}</width><height>71</height></original_size><source>{source}</source></task>
<dumped>2026-11-01 11:00:00.000000+00:00</dumped></meta>"""


def cvat_box(frame, box, *, key=True, outside=False, rotation=None):
    corners = " ".join(f'{name}="{value:.2f}"' for name, value in zip(("xtl", "ytl", "xbr", "ybr"), box, strict=True))
    turned = "" if rotation is None else f' rotation="{rotation}"'
    state = f'keyframe="{int(key)}" outside="{int(outside)}" occluded="0"'
    return f'<box frame="{frame}" {state} {corners} z_order="0"{turned}>\n</box>'


def cvat_file(path, *tracks, source="video.mp4", size=40, width=97, start=0, step="", meta=META, tasks=()):
    """``tracks``: (label, boxes); ``tasks``: an attribute of each that names its task."""
    stated = meta.format(source=source, size=size, width=width, start=start, stop=39, step=step)
    body = "".join(
        f'<track id="{index}" {task} label="{label}" source="manual">{"".join(boxes)}</track>'
        for index, ((label, boxes), task) in enumerate(zip_longest(tracks, tasks, fillvalue=""))
    )
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>{stated}{body}</annotations>'
    path.write_text(text, encoding="utf-8")
    return path


PREDICTED = (10, 20, 50, 60)


def test_key_frames_interpolation_and_outside(tmp_path, table, brief):
    """The person moves the box at frame 10 by 8 pixels, lets it return by 20, and ends the object at 25."""
    between = [cvat_box(f, (10 + 8 * (20 - f) / 10, 20, 50, 60), key=False) for f in range(11, 20)]
    boxes = [cvat_box(0, PREDICTED), *(cvat_box(f, (0, 0, 1, 1), key=False) for f in range(1, 10))]
    boxes += [cvat_box(10, (18, 20, 50, 60)), *between, cvat_box(20, PREDICTED)]
    boxes += [cvat_box(25, PREDICTED, outside=True)]
    found = import_labels(cvat_file(tmp_path / "a.xml", ("cat", boxes)), "cvat", tables=[table])
    assert not found.left_out
    told = brief(found.corrections)
    assert list(told) == list(range(40))
    assert told[10] == ("box", (18, 20, 50, 60), True)
    assert told[5] == ("box", (14, 20, 50, 60), False)  # only key frames count: between 0 and 10 CVAT draws a line
    assert told[15] == ("box", (14, 20, 50, 60), False)
    assert told[0] == told[20] == told[24] == ("accepted", PREDICTED, False)
    assert told[25] == told[29] == ("none", True)
    assert told[30] == told[39] == ("accepted", False)
    assert {one.tag for one in found.corrections} == {"cat"}


def test_another_class_and_a_second_object(tmp_path, table, brief):
    write_table(tmp_path / "boxes" / "other.csv", [row(0, (1, 2, 3, 4), "dog")], video="other.mp4")
    path = cvat_file(
        tmp_path / "a.xml",
        ("dog", [cvat_box(0, PREDICTED), cvat_box(10, PREDICTED, outside=True)]),
        ("cat", [cvat_box(10, PREDICTED), cvat_box(30, PREDICTED, outside=True)]),
        ("cat", [cvat_box(12, (60, 20, 90, 60)), cvat_box(14, (60, 20, 90, 60), outside=True)]),
    )
    found = import_labels(path, "cvat", tables=[table.parent])
    told = brief(found.corrections)
    assert told[0] == ("class", PREDICTED, True)
    assert told[9] == ("class", PREDICTED, False)
    assert told[10] == ("accepted", PREDICTED, False)
    assert told[12] == ("box", PREDICTED, (60, 20, 90, 60), True)
    assert told[14] == ("accepted", PREDICTED, False)
    assert {one.frame: one.tag for one in found.corrections}[0] == "dog"


def test_a_file_without_a_track_says_nothing_of_frames_that_nobody_looked_at(tmp_path, table, brief):
    """It may be an export of the wrong task, or of one that nobody has begun."""
    empty = cvat_file(tmp_path / "a.xml")
    found = import_labels(empty, "cvat", tables=[table])
    assert found.corrections == []
    assert list(found.left_out) == [
        "'video.mp4': no label of it; only frames that you looked at (checked) count as empty"
    ]
    (tmp_path / "queue.csv").write_text("video,frame\nvideo,3\nvideo,7\n", encoding="utf-8")
    some = import_labels(empty, "cvat", tables=[table], checked=tmp_path / "queue.csv")
    assert brief(some.corrections) == dict.fromkeys((3, 7), ("none", True))
    everything = import_labels(empty, "cvat", tables=[table], checked="all")
    assert not everything.left_out
    told = brief(everything.corrections)
    assert [frame for frame, one in told.items() if one == ("none", True)] == list(range(30))


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"source": "holiday.mp4"}, "boxes of 'holiday.mp4': no table is of this video"),
        ({"size": 39}, "boxes of 'video.mp4': it has 39 frames, video has 40"),
        ({"width": 96}, "boxes of 'video.mp4': its frames are 96×71, those of video are 97×71"),
    ],
)
def test_another_video_is_named_counted_and_left_out(tmp_path, table, stated, reason):
    path = cvat_file(tmp_path / "a.xml", ("cat", [cvat_box(0, PREDICTED), cvat_box(3, PREDICTED)]), **stated)
    found = import_labels(path, "cvat", tables=[table])
    assert (found.corrections, dict(found.left_out)) == ([], {reason: 2})


def test_a_task_of_some_frames_keeps_the_numbers_of_the_video(tmp_path, table, brief):
    """With a first frame or a step, the length of the task is not that of the video, but frame numbers are."""
    path = cvat_file(tmp_path / "a.xml", ("cat", [cvat_box(20, (1, 2, 30, 40))]), size=4, start=10, step="step=5")
    assert brief(import_labels(path, "cvat", tables=[table]).corrections)[20] == ("box", (1, 2, 30, 40), True)


def test_labels_that_cannot_be_right_are_counted(tmp_path, table):
    boxes = [cvat_box(0, PREDICTED), cvat_box(1, (10, 20, 300, 60)), cvat_box(2, (10, 20, 10, 60))]
    boxes += [cvat_box(3, PREDICTED, rotation=30), cvat_box(99, PREDICTED), cvat_box(4, PREDICTED)]
    polygon = '<polygon frame="0" keyframe="1" outside="0" occluded="0" points="1,2;3,4;5,6" z_order="0"></polygon>'
    path = cvat_file(tmp_path / "a.xml", ("cat", boxes), ("cow", [cvat_box(0, PREDICTED)]), ("cat", [polygon]))
    found = import_labels(path, "cvat", tables=[table])
    assert dict(found.left_out) == {
        "rotated box of class 'cat': only upright boxes are read": 1,
        "polygon of class 'cat': only upright boxes are read": 1,
        "box of 'video.mp4': its frame is beyond the end": 1,
        "box of 'video.mp4': it lies outside the frame": 1,
        "box of 'video.mp4': it has no area": 1,
        "box of 'video.mp4': class 'cow' is unknown": 1,
    }
    assert found.corrections == []  # every frame shows something that was left out


def test_a_frame_whose_box_was_left_out_does_not_become_one_without_an_object(tmp_path, table, brief):
    cow = [cvat_box(5, PREDICTED), cvat_box(8, PREDICTED, outside=True)]
    cat = [cvat_box(8, PREDICTED), cvat_box(12, (0, 0, 0, 0)), cvat_box(14, PREDICTED, outside=True)]
    found = import_labels(cvat_file(tmp_path / "a.xml", ("cow", cow), ("cat", cat)), "cvat", tables=[table])
    told = brief(found.corrections)
    assert told[4] == told[14] == ("none", True)
    assert told[8] == ("accepted", PREDICTED, False)
    assert not {5, 6, 7, 9, 10, 11, 12, 13} & set(told)


def test_cvat_for_images_of_a_video(tmp_path, table, brief):
    path = tmp_path / "annotations.xml"
    image = '<image id="{0}" name="frame_{0:06d}" width="97" height="71">{1}</image>'
    drawn = '<box label="cat" source="manual" occluded="0" xtl="1.00" ytl="2.00" xbr="30.00" ybr="40.50" z_order="0"/>'
    text = "".join(image.format(frame, drawn if frame == 3 else "") for frame in (3, 4, 35))
    path.write_text(f"<annotations><version>1.1</version><meta/>{text}</annotations>")
    told = brief(import_labels(path, "cvat", tables=[table]).corrections)
    assert told == {3: ("box", (1, 2, 30, 40.5), True), 4: ("none", True), 35: ("accepted", False)}


def test_a_project_of_two_tasks(tmp_path, table, brief):
    task = META[META.index("<task>") : META.index("</task>") + 7]
    other = task.format(source="b.mp4", size=9, width=97, start=0, stop=8, step="").replace(
        "<id>7</id>", "<id>8</id>", 1
    )
    meta = f"<meta><project><id>1</id><tasks>{task}{other}</tasks></project></meta>"
    tracks = [("cat", [cvat_box(1, (1, 2, 3, 4))]), ("cat", [cvat_box(2, (5, 6, 7, 8))])]
    path = cvat_file(tmp_path / "a.xml", *tracks, meta=meta, tasks=('task_id="8"', 'task_id="7"'))
    found = import_labels(path, "cvat", tables=[table])
    assert brief(found.corrections)[2] == ("box", (5, 6, 7, 8), True)
    assert dict(found.left_out) == {"boxes of 'b.mp4': no table is of this video": 1}
