"""corrections.csv: what is written comes back, and nonsense is named."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.labels import (
    Correction,
    read_corrections,
    write_corrections,
)
from colocam.types import Box

NAMES = st.sampled_from(["cat/video-01", "猫 1", "=1+1", "a,b", 'say "x"', "-3", "'@x"])
SIDES = st.tuples(st.floats(0, 1e4), st.floats(1e-3, 1e4))
BOXES = st.builds(lambda x, y: Box(x[0], y[0], x[0] + x[1], y[0] + y[1]), SIDES, SIDES)


@st.composite
def corrections(draw):
    kind = draw(st.sampled_from(["box", "none", "accepted", "class"]))
    least = 1 if kind in {"box", "class"} else 0
    boxes = () if kind == "none" else tuple(draw(st.lists(BOXES, min_size=least, max_size=3)))
    pts = draw(st.none() | st.floats(-5, 1e5))
    place = draw(NAMES), draw(st.integers(0, 10**6)), pts
    return Correction(*place, kind, draw(NAMES), boxes, draw(st.booleans()), "cvat", draw(NAMES))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=st.lists(corrections(), min_size=1, max_size=6, unique_by=lambda one: (one.path, one.video, one.frame)))
def test_what_is_written_comes_back(tmp_path_factory, made):
    path = tmp_path_factory.mktemp("corrections") / "corrections.csv"
    assert read_corrections(write_corrections(path, made)) == made


def test_a_later_file_replaces_whole_frames(tmp_path):
    box, other = Box(1, 2, 3, 4), Box(5, 6, 7, 8)
    first = [Correction("a", 0, None, "box", "cat", (box,)), Correction("a", 0, None, "box", "dog", (other,))]
    first += [Correction("a", 1, None, "box", "cat", (box,))]
    second = [Correction("a", 0, None, "none", "cat", ())]
    paths = [write_corrections(tmp_path / f"{i}.csv", part) for i, part in enumerate((first, second))]
    assert read_corrections(*paths) == [second[0], first[2]]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (",0,,box,cat,1,2,3,4", "row 2: the video has no name"),
        ("a,,,box,cat,1,2,3,4", "is not a frame index"),
        ("a,-1,,box,cat,1,2,3,4", "frame '-1' is not a frame index"),
        ("a,1.5,,box,cat,1,2,3,4", "frame '1.5' is not a frame index"),
        ("a,1e99,,box,cat,1,2,3,4", "is not a frame index"),
        ("a,0,,boxes,cat,1,2,3,4", "got 'boxes': did you mean 'box'"),
        ("a,0,,box,cat,,,,", "there is no box"),
        ("a,0,,none,cat,1,2,3,4", "kind is none, but there is a box"),
        ("a,0,,box,,1,2,3,4", "a box needs a class"),
        ("a,0,,box,cat,3,2,1,4", "a box needs x1 < x2"),
        ("a,0,,box,cat,1,2,3,", "x1, y1, x2 and y2 must all be given or all be empty"),
        ("a,0,,box,cat,1,2,inf,4", "x2 'inf' is not a number"),
        ("a,0,,box,cat,1,2,3,4,7", "key '7' must be 0 or 1"),
        ("a,0,,box,cat,1,2,3,4\na,0,,accepted,cat,1,2,3,4", "row 3: frame 0 of 'a' has another kind in row 2"),
        ("a,0,soon,box,cat,1,2,3,4", "pts 'soon' is not a number"),
    ],
)
def test_nonsense_is_named(tmp_path, row, told):
    path = tmp_path / "corrections.csv"
    path.write_text(f"video,frame,pts,kind,class,x1,y1,x2,y2,key\n{row}\n")
    with pytest.raises(ColocamError, match=r"corrections\.csv, row") as error:
        read_corrections(path)
    assert told in str(error.value)
