"""Films are known by all their bytes."""

import pytest

from colocam.serve.library import Library
from colocam.serve.store import EventStore, open_workspace


@pytest.fixture
def library(tmp_path):
    with open_workspace(tmp_path / "page") as workspace:
        store = EventStore(workspace.database)
        (tmp_path / "model.onnx").write_bytes(b"a model")
        yield lambda: Library(workspace, store, [tmp_path / "model.onnx"], load=str, quick=str)
        store.close()


@pytest.fixture
def twins(tmp_path):
    """Two large files that differ in one byte."""
    content = bytearray(4 << 20)
    paths = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for value, path in enumerate(paths):
        content[1 << 18] = value
        path.write_bytes(content)
    return paths


def test_films_that_differ_anywhere_have_different_ids_and_copies_the_same(library, twins, tmp_path):
    first, second = (library().add(path).id for path in twins)
    assert first != second
    moved = twins[0].rename(tmp_path / "moved.mkv")
    assert library().add(moved).id == first
    images = tmp_path / "images"
    images.mkdir()
    (images / "0.png").write_bytes(b"an image")
    before = library().add(images).id
    (images / "0.png").write_bytes(b"an imagE")
    assert library().add(images).id != before


def test_a_second_start_reads_no_film_whole(library, twins, monkeypatch):
    monkeypatch.setattr("colocam.utils.digests.SETTLED", -1.0)
    film = library().add(twins[0])
    again = library()

    def refuse(_path):
        raise AssertionError("the film was read again")

    monkeypatch.setattr("colocam.utils.digests._of_bytes", refuse)
    assert again.add(twins[0]).id == film.id
