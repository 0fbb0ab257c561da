"""Videos, their tables, what supervision reads from an export, and corrections in short."""

import pytest

from tests.helpers.label_scenes import row, write_table


@pytest.fixture
def video(tmp_path, make_video, numbered):
    """A real video of 12 numbered frames of 64×48 and its table: a box in most frames, nothing in frames 4 and 5."""
    path = make_video(tmp_path / "my video.mp4", numbered(12))
    rows = [row(frame, None if frame in {4, 5} else (frame, 2.5, frame + 20.25, 40)) for frame in range(12)]
    return write_table(tmp_path / "my video.csv", rows, size=(64, 48), frames=12, video=path.name)


@pytest.fixture(scope="session")
def read_by_supervision():
    """``read_by_supervision(out, to)``: an export with images as supervision's data set."""
    import supervision as sv  # noqa: PLC0415 - takes a second, and is not installed everywhere

    def read(out, to):
        if to == "coco":
            return sv.DetectionDataset.from_coco(str(out / "images"), str(out / "annotations/instances_default.json"))
        if to == "voc":
            return sv.DetectionDataset.from_pascal_voc(str(out / "JPEGImages"), str(out / "Annotations"))
        folders = str(out / "images" / "train"), str(out / "labels" / "train"), str(out / "data.yaml")
        return sv.DetectionDataset.from_yolo(*folders, force_masks=to == "yolo-segments")

    return read


@pytest.fixture
def table(tmp_path):
    """``boxes/video.csv``: 40 frames of 97×71 at 25 frames/s, the same box of a cat in frames 0 to 29, then none."""
    rows = [row(frame, (10, 20, 50, 60) if frame < 30 else None) for frame in range(40)]
    return write_table(tmp_path / "boxes" / "video.csv", rows, video="video.mp4")


@pytest.fixture
def brief():
    """``brief(corrections)``: frame → kind, corners of the boxes of all objects, key."""

    def brief(corrections):
        frames = {}
        for one in corrections:
            _, *boxes, key = frames.get(one.frame, (one.kind, one.key))
            assert key == one.key
            frames[one.frame] = (one.kind, *boxes, *(tuple(box) for box in one.boxes), key)
        return frames

    return brief
