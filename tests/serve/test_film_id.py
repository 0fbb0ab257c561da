"""Films are known by all their bytes; corrections of folders of the first version are found."""

import pytest

from colocam.serve import film_id
from colocam.serve.actions import Action, Change
from colocam.serve.event_store import EventStore, FilmRow
from colocam.serve.film_id import BLOCK, BLOCKS, FilmIds, sampled_id

NONE = Change(kind="edit", actions=[Action(kind="none", start=0, stop=1)])


@pytest.fixture
def store(tmp_path):
    store = EventStore(tmp_path / "corrections.sqlite")
    yield store
    store.close()


@pytest.fixture
def twins(tmp_path):
    """Two large files that differ in one byte which the first version did not look at."""
    content = bytearray(2 * BLOCK * BLOCKS)
    paths = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for value, path in enumerate(paths):
        content[BLOCK + 7] = value
        path.write_bytes(content)
    assert sampled_id(paths[0]) == sampled_id(paths[1])
    return paths


def id_of(ids, path):
    return ids.of(path, ids.digest(path))


def test_films_that_differ_anywhere_have_different_ids_and_copies_the_same(store, twins, tmp_path):
    ids = FilmIds(store, tmp_path / "memory")
    first, second = (id_of(ids, path) for path in twins)
    assert first != second
    moved = twins[0].rename(tmp_path / "moved.mkv")
    assert id_of(FilmIds(store, tmp_path / "memory"), moved) == first
    images = tmp_path / "images"
    images.mkdir()
    (images / "0.png").write_bytes(b"an image")
    before = id_of(ids, images)
    (images / "0.png").write_bytes(b"an imagE")
    assert id_of(ids, images) != before


@pytest.mark.parametrize("owner", [0, 1])
def test_corrections_of_the_first_version_go_to_one_film_alone(store, twins, tmp_path, owner):
    old = sampled_id(twins[0])
    store.add_film(FilmRow(old, "film", str(twins[owner]), ""))
    store.append(old, "client-1", 0, NONE)
    ids = FilmIds(store, tmp_path / "memory")
    found = [id_of(ids, path) for path in twins]
    assert found[owner] == old
    assert found[1 - owner] != old
    assert [id_of(FilmIds(store, tmp_path / "memory"), path) for path in twins] == found


def test_corrections_of_the_first_version_follow_a_film_that_was_moved_or_removed(store, twins, tmp_path):
    old = sampled_id(twins[0])
    store.append(old, "client-1", 0, NONE)  # the film was removed from the library
    assert id_of(FilmIds(store, tmp_path / "memory"), twins[0]) == old


def test_a_second_start_reads_no_film_whole(store, twins, tmp_path, monkeypatch):
    monkeypatch.setattr("colocam.utils.digests.SETTLED", -1.0)
    digest = FilmIds(store, tmp_path / "memory").digest(twins[0])

    def refuse(_path):
        raise AssertionError("the film was read again")

    monkeypatch.setattr("colocam.utils.digests._of_bytes", refuse)
    assert film_id.FilmIds(store, tmp_path / "memory").digest(twins[0]) == digest
