"""Damaged label files end in one line, whatever was damaged."""

import json
import random
from itertools import pairwise
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest

from colocam.errors import ColocamError
from colocam.labels import import_labels, limited_reading, read_corrections, readable, write_corrections
from colocam.labels.formats import cvat
from colocam.labels.formats.reading import MOST_VALUES
from tests.helpers.label_scenes import exported, row

ROWS = [row(frame, (frame, 2, frame + 20, 40) if frame % 7 else None, track=0) for frame in range(12)]
VALUES = [None, "", "cat", -1, 0, 1e300, [], [[]], {}, {"a": 1}, True, "NaN"]


def imported(*arguments, **options):
    """What an import gives, or its error of one line."""
    try:
        return import_labels(*arguments, **options).corrections, ""
    except ColocamError as error:
        return [], str(error)


@pytest.mark.parametrize("to", readable())
def test_changed_bytes(to):
    rng = random.Random(to)
    with exported(ROWS, to) as (out, _):
        files = [path for path in sorted(out.rglob("*")) if path.is_file() and not path.name.startswith(".")]
        for _ in range(25):
            path = rng.choice(files)
            whole = path.read_bytes()
            if not whole:
                continue
            start = rng.randrange(len(whole))
            piece = rng.choice([b"", b"\x00", b"<", b'"', b"-9", b"1e999", b"\xff", whole[:start]])
            path.write_bytes(whole[:start] + piece + whole[start + rng.randrange(1, 20) :])
            for tables in ([], [out.parent / "clip one.csv"]):
                found, problem = imported(out, to, tables=tables)
                assert len(problem.splitlines()) <= 1
                target = out.parent / "corrections.csv"
                if found:  # what is written can be read
                    read_corrections(write_corrections(target, found))
                    target.unlink()
            path.write_bytes(whole)


def replaced(value, rng):
    """A JSON value in which one part is another."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: replaced(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], replaced(value[at], rng), *value[at + 1 :]]
    return rng.choice(VALUES)


@pytest.mark.parametrize("to", ["coco", "label-studio"])
def test_json_of_other_types(to):
    rng = random.Random(to)
    with exported(ROWS, to) as (out, _):
        path = out / ("tasks.json" if to == "label-studio" else "annotations/instances_default.json")
        whole = json.loads(path.read_text())
        for _ in range(120):
            path.write_text(json.dumps(replaced(whole, rng)))
            _, problem = imported(path, to, tables=[out.parent / "clip one.csv"])
            assert len(problem.splitlines()) <= 1


def test_aliases_in_the_yaml_of_yolo_are_refused(tmp_path):
    """Eight lines of them would become a name of a gigabyte."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in pairwise("abcdefgh")]
    (tmp_path / "data.yaml").write_text("\n".join([*lines, "names: [*h]"]), encoding="utf-8")
    with pytest.raises(ColocamError, match=r"data.yaml is not valid YAML: aliases \(\*name\) are not allowed"):
        import_labels(tmp_path, "yolo")


@pytest.mark.parametrize(("form", "file", "begin", "part", "end"), [
    ("coco", "a.json", '{"images": [', "[],", "0]}"),
    ("label-studio", "a.json", "[", "{},", "{}]"),
    ("cvat", "a.xml", "<annotations>", "<a/>", "</annotations>"),
    ("voc", "a.xml", "<annotation>", '<a b=""/>', "</annotation>"),
    ("csv", "a.csv", "frame,class,x1,y1,x2,y2\n", "1,a,,,,\n", ""),
])  # fmt: skip
def test_a_file_of_too_many_values_is_refused_before_it_is_parsed(tmp_path, form, file, begin, part, end):
    path = tmp_path / file
    path.write_text(begin + part * (MOST_VALUES + 1) + end)
    with pytest.raises(ColocamError, match=r"values, the limit is 16777216: split the file"):
        import_labels(path, form)


def test_an_archive_that_grows_too_much_is_not_unpacked(tmp_path):
    path = tmp_path / "labels.zip"
    for lists, problem in ((1 << 20, "must be a list of objects"), (1 << 23, "too large for this archive: unpack it")):
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            archive.writestr("a.json", '{"images": [' + "[]," * lists + "0]}")
        assert path.stat().st_size < 1 << 16
        with pytest.raises(ColocamError, match=problem):
            import_labels(path, "coco")


def test_a_file_of_too_many_tracks_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("<annotations>" + '<track id="1" label="kite"/>' * (cvat.MOST_TRACKS + 1) + "</annotations>")
    with pytest.raises(ColocamError, match=r"a\.xml: has 262145 tracks, the limit is 262144: split the file"):
        import_labels(path, "cvat")


def test_random_bytes_beside_labels_do_not_hide_how_much_these_grow(tmp_path):
    path = tmp_path / "labels.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "video,frame,class,x1,y1,x2,y2\n" + "test-00,1,kite,1,1,5,5\n" * 1_500_000)
        archive.writestr("pad.bin", random.Random(0).randbytes(1 << 20))
    assert path.stat().st_size > 1 << 20
    with pytest.raises(ColocamError, match="too large for this archive: unpack it"):
        import_labels(path, "csv")


@pytest.mark.parametrize("form", readable())
@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_an_archive_whose_packed_bytes_are_damaged(tmp_path, form, method):
    path = tmp_path / "labels.zip"
    with ZipFile(path, "w", method) as archive:
        archive.writestr("a.xml", random.Random(0).randbytes(300).hex())
        start = archive.getinfo("a.xml").header_offset + 60
    whole = bytearray(path.read_bytes())
    whole[start : start + 40] = b"\xff" * 40
    path.write_bytes(whole)
    with pytest.raises(ColocamError, match=r"^\S*labels\.zip: not a complete ZIP archive: download it again"):
        import_labels(path, form)


def test_the_command_refuses_what_takes_too_much_memory(tmp_path, monkeypatch, colocam):
    monkeypatch.setattr(limited_reading, "MEMORY", 32 << 20)
    box = '<box frame="1" keyframe="1" outside="0" xtl="1" ytl="1" xbr="5" ybr="5"/>'
    track = f'<track id="1" label="kite">{box}</track>'
    path = tmp_path / "a.xml"
    path.write_text(f"<annotations>{track * 60_000}</annotations>")
    out = tmp_path / "corrections.csv"
    done = colocam("import", path, "--from", "cvat", "-o", out)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {path}: takes more than 32 MiB of memory: split the file\n"
    assert not out.exists()
