"""Labels that are read in a process of their own: the same corrections, and limits of memory and time."""

import pytest

from colocam.errors import ColocamError
from colocam.labels import FORMATS, import_labels, limited_reading, read_corrections, write_corrections
from colocam.labels.limited_reading import import_labels_apart, read_corrections_apart
from tests.helpers.label_scenes import exported, row

ROWS = [row(frame, (frame, 2, frame + 20, 40) if frame % 7 else None, track=0) for frame in range(12)]


@pytest.mark.parametrize("form", ["cvat", "mot", "csv"])
def test_what_is_read_apart_is_what_is_read_here(form, monkeypatch):
    with exported(ROWS, form) as (out, _):
        tables = [out.parent / "clip one.csv"]
        options = {"tables": tables, "classes": ["dog"]} if form == "mot" else {"tables": tables}
        here = import_labels(out, form, **options)
        assert here.corrections or here.left_out
        hidden = {name: entry for name, entry in FORMATS.items() if name != form}
        monkeypatch.setattr("colocam.labels.formats.FORMATS", hidden)  # of this process
        assert import_labels_apart(out, form, **options) == here
        target = write_corrections(out.parent / "corrections.csv", here.corrections)
        assert read_corrections_apart(target) == read_corrections(target) == here.corrections


def test_memory_and_time_are_limited(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text('{"images": [' + "[]," * 3_000_000 + "0]}")
    with pytest.raises(ColocamError, match="must be a list of objects"):
        import_labels_apart(path, "coco", tables=[])
    monkeypatch.setattr(limited_reading, "MEMORY", 64 << 20)
    with pytest.raises(ColocamError, match=r"a\.json: takes more than 64 MiB of memory: split the file"):
        import_labels_apart(path, "coco", tables=[])
    monkeypatch.setattr(limited_reading, "SECONDS", 0.0)
    with pytest.raises(ColocamError, match=r"a\.json: not read within 0 s: split the file"):
        import_labels_apart(path, "coco", tables=[])
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_extensions_are_known_there(tmp_path, monkeypatch):
    extension = tmp_path / "mine.py"
    extension.write_text(
        "from colocam.labels import *\nfrom colocam.types import Box\n"
        "def read(path, known, left_out):\n"
        "    return [ImportedVideo(('video',), tracks_of_frames([FrameLabel(3, 'cat', Box(1, 2, 3, 4))]))]\n"
        "FORMATS['mine'] = Format('mine', read=read)\n"
    )
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(extension))
    (found,) = import_labels_apart(extension, "mine", tables=[]).corrections
    assert (found.video, found.frame, found.tag, found.boxes) == ("video", 3, "cat", ((1, 2, 3, 4),))
