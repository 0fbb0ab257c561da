import base64
import json

import cv2
import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.report import gallery as room
from colocam.report.gallery import gallery
from colocam.video.drawing import PREDICTED, TRUE


def decode(address):
    head, data = address.split(",")
    assert head == "data:image/jpeg;base64"
    return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)[..., ::-1].astype(int)


def near(pixel, color, tolerance=60):
    return np.abs(pixel - np.array(color)).max() <= tolerance


def pictures(groups):
    return [picture for group in groups for case in group.cases for picture in case.images]


def test_pictures_decode_and_show_boxes_at_their_places(finished):
    arrays = np.load(finished / "cases.npz")
    case = gallery(finished / "cases.npz")[0].cases[0]
    scale = room.EDGE / arrays["images"].shape[1]
    frame, *methods = [decode(picture.address) for picture in case.images]
    assert frame.shape == (room.EDGE, room.EDGE, 3)
    x1, y1, x2, y2 = np.round(arrays["truth"][0, 0] * scale).astype(int)
    assert near(frame[(y1 + y2) // 2, x1 + 1], TRUE)
    assert near(frame[y2 - 1, (x1 + x2) // 2], TRUE)
    for method, picture in zip(("layercam", "fcam", "colocam"), methods, strict=True):
        left, top, right, bottom = np.round(arrays[f"boxes__{method}"][0] * scale).astype(int)
        edge = picture[(top + bottom) // 2, [left + 1, right - 1]]
        assert near(edge[0], PREDICTED)
        assert near(edge[1], PREDICTED)


def test_groups_come_in_order_with_every_method_side_by_side_and_its_verdict(finished):
    arrays = np.load(finished / "cases.npz")
    groups = gallery(finished / "cases.npz")
    assert [(group.name, len(group.cases)) for group in groups] == [
        (name, 3) for name in ("best", "typical", "worst", "empty")
    ]
    cases = [(group.name, case) for group in groups for case in group.cases]
    for at, (name, case) in enumerate(cases):
        assert [picture.title for picture in case.images] == ["Frame", "LayerCAM", "F-CAM", "CoLo-CAM"]
        for method, picture in zip(("layercam", "fcam", "colocam"), case.images[1:], strict=True):
            overlap = arrays[f"iou__{method}"][at]
            if name == "empty":
                assert picture.right is (method == "colocam")
                assert picture.verdict == ("no box, correct" if method == "colocam" else "false box")
            else:
                assert picture.verdict == f"IoU {overlap:.2f}"
                assert picture.right == (overlap >= 0.5)
            assert picture.verdict in picture.alt


def rewrite(path, **changes):
    """The same cases with some arrays replaced; None removes one."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays |= changes
    np.savez_compressed(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize("shape", [(60, 120), (448, 896)])
def test_frames_of_any_size_keep_their_shape(run, shape):
    path = run / "cases.npz"
    rewrite(path, images=np.zeros((4, *shape, 3), np.uint8))
    assert decode(gallery(path)[0].cases[0].images[0].address).shape == (room.EDGE // 2, room.EDGE, 3)


def test_sharpness_gives_way_before_weight(run, monkeypatch):
    def size_of(groups):
        return sum(len(picture.address) for picture in pictures(groups))

    full = gallery(run / "cases.npz")
    monkeypatch.setattr(room, "BUDGET", size_of(full) // 2)
    lighter = gallery(run / "cases.npz")
    assert size_of(lighter) <= room.BUDGET
    assert len(pictures(lighter)) == len(pictures(full))
    monkeypatch.setattr(room, "BUDGET", 1)
    assert decode(pictures(gallery(run / "cases.npz"))[0].address).shape[0] == room.EDGE // 4


def blurred(data):
    """Other bytes inside the first compressed array, which zlib refuses."""
    return data[:200] + bytes(255 - byte for byte in data[200:260]) + data[260:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not an archive"),
        lambda path: path.write_bytes(path.read_bytes()[:3000]),
        lambda path: rewrite(path, meta=None),
        lambda path: rewrite(path, meta=np.array("{not json")),
        lambda path: rewrite(path, truth=np.zeros((1, 1, 4), np.float32)),
        lambda path: rewrite(path, images=np.array([{}], object)),
        lambda path: rewrite(path, images=None),
        lambda path: rewrite(path, images=np.zeros((12, 0, 0, 3), np.uint8)),
        lambda path: rewrite(path, meta=np.array(json.dumps([1] * 12))),
        lambda path: path.write_bytes(blurred(path.read_bytes())),
    ],
)
def test_a_damaged_file_is_one_line(run, damage):
    path = run / "cases.npz"
    damage(path)
    with pytest.raises(ColocamError, match=r"cases\.npz.*evaluate the run again") as caught:
        gallery(path)
    assert "\n" not in str(caught.value)
