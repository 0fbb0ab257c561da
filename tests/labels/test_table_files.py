"""Tables of a folder, and names that tell tables apart."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.labels.table_files import names_of, tables_of
from tests.helpers.label_scenes import row, write_table

FOLDERS = st.lists(st.sampled_from(["a", "A", "b", "a_b", "..", " "]), max_size=3).map("/".join)
FILES = st.tuples(FOLDERS, st.sampled_from(["x.csv", "X.csv", "b_x.csv", "x.parquet", "..csv"])).map("/".join)


def test_names_have_as_many_folders_as_they_need():
    tables = ["/videos/cat/01.csv", "/videos/dog/01.csv", "/videos/dog/02.csv", "/old/dog/01.csv"]
    assert names_of(list(map(Path, tables))) == ["cat_01", "videos_dog_01", "02", "old_dog_01"]
    assert names_of([Path("a/x.csv"), Path("a/x.csv"), Path("a/x.parquet")]) == ["x", "x-2", "x-3"]


@given(st.lists(FILES, min_size=1, max_size=6))
def test_names_differ_and_are_no_paths(files):
    names = names_of(list(map(Path, files)))
    assert len({name.casefold() for name in names}) == len(files)
    for name in names:
        assert name not in {"", ".", ".."}
        assert not set(name) & set("/\\")


@given(st.lists(FILES, min_size=1, max_size=6, unique=True), st.randoms())
def test_names_do_not_depend_on_the_order_of_different_files(files, random):
    tables = [Path(f"/videos/{number}/{file.replace('..', 'c')}") for number, file in enumerate(files)]
    shuffled = random.sample(tables, len(tables))
    assert dict(zip(shuffled, names_of(shuffled), strict=True)) == dict(zip(tables, names_of(tables), strict=True))


def test_tables_of_a_folder_and_its_folders(tmp_path):
    tables = [write_table(tmp_path / name, [row(0, (1, 2, 3, 4))]) for name in ("b.csv", "cat/01.csv", "dog/01.csv")]
    write_table(tmp_path / ".work" / "01.csv", [row(0, (1, 2, 3, 4))])
    (tmp_path / "queue.csv").write_text("video,frame\n", encoding="utf-8")
    assert tables_of([tmp_path]) == tables
    assert tables_of([tmp_path / "queue.csv", str(tmp_path / "cat")]) == [tmp_path / "queue.csv", tables[1]]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ColocamError, match=r"empty: no localization table with its \.video\.json"):
        tables_of([tmp_path / "empty"])
