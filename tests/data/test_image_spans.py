"""Some pictures of a folder as a cell of a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.data.catalogue import Listing, read_catalogue
from colocam.errors import ColocamError
from tests.helpers.csv_tables import csv_table

COLUMNS = "path,tag,split,video,clip,pictures"
NAMES = [f"{number}.jpg" for number in (1, 2, 3, 9, 10, 11)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures.v1")
    for name in (*NAMES, "notes.txt"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("spans", "names"),
    [
        ("", NAMES),
        ("2.jpg", ["2.jpg"]),
        ("2.jpg..10.jpg", ["2.jpg", "3.jpg", "9.jpg", "10.jpg"]),
        ("1.jpg; 9.jpg..9.jpg ;11.jpg", ["1.jpg", "9.jpg", "11.jpg"]),
        ("1.jpg..3.jpg;2.jpg", ["1.jpg", "2.jpg", "3.jpg"]),
    ],
)
def test_chosen(folder, spans, names):
    assert Listing(folder).chosen(spans, "here") == tuple(folder / name for name in names)


@given(st.sets(st.integers(0, len(NAMES) - 1), min_size=1))
def test_what_is_written_is_read(folder, places):
    listing = Listing(folder)
    chosen = tuple(listing.images[place] for place in sorted(places))
    assert listing.chosen(listing.spans(chosen), "here") == chosen


def test_shots_of_one_folder_in_a_manifest(tmp_path, folder, make_video):
    make_video(tmp_path / "dog.mp4", 2)
    table = csv_table(
        tmp_path / "manifest.csv",
        COLUMNS,
        f"{folder},cat,train,cat/1,a,1.jpg..3.jpg",
        f"{folder},cat,val,cat/2,b,9.jpg;11.jpg",
        f"{folder},cat,train,,,",
        "dog.mp4,dog,train,dog,dog,",
    )
    clips = {clip.name: clip for clip in read_catalogue(table).clips}
    assert [path.name for path in clips["a"].frames] == NAMES[:3]
    assert [path.name for path in clips["b"].frames] == ["9.jpg", "11.jpg"]
    assert [path.name for path in clips[str(folder)].frames] == NAMES
    assert clips["dog"].frames == ()


@pytest.mark.parametrize(
    ("path", "spans", "told"),
    [
        ("{}", "4.jpg", "there is no image '4.jpg' in the folder"),
        ("{}", "1.jpg..5.jpg", "there is no image '5.jpg'"),
        ("{}", "notes.txt", "there is no image 'notes.txt'"),
        ("{}", "1.jpg;;2.jpg", "there is no image ''"),
        ("{}", "9.jpg..2.jpg", "the span '9.jpg..2.jpg' in pictures ends before it starts"),
        ("dog.mp4", "1.jpg", r".*dog\.mp4 is not a folder: leave pictures empty"),
    ],
)
def test_wrong_pictures_in_a_manifest(tmp_path, folder, path, spans, told):
    (tmp_path / "dog.mp4").touch()
    with pytest.raises(ColocamError, match=f"row 2: {told}"):
        read_catalogue(csv_table(tmp_path / "manifest.csv", COLUMNS, f"{path.format(folder)},cat,train,v,c,{spans}"))
