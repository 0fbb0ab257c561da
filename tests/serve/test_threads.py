"""Shared state of the server: several threads change it at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from colocam.serve import stills
from colocam.serve.guard import RefusalError
from served_library import grey_film, serving

THREADS = 4


def at_once(work, count=THREADS):
    """Results of ``work(number)`` in several threads."""
    with ThreadPoolExecutor(count) as pool:
        return [one.result() for one in [pool.submit(work, number) for number in range(count)]]


@pytest.fixture
def adding_at_once(tmp_path, monkeypatch):
    """A library whose films several threads add at once: all know the id of theirs before one is added."""
    with serving(tmp_path / "page") as server:
        together, digest = threading.Barrier(THREADS), server.library._digest

        def known(*arguments):
            found = digest(*arguments)
            together.wait(60)
            return found

        server.read = []
        with monkeypatch.context() as patched:
            patched.setattr(server.library._to_read, "put", server.read.append)
            patched.setattr(server.library, "_digest", known)
            yield server


def test_a_film_that_several_threads_add_is_one_film_and_read_once(adding_at_once, make_video, tmp_path):
    library, path = adding_at_once.library, grey_film(make_video, tmp_path / "film.mp4", range(50, 53))
    added = at_once(lambda _: library.add(path))
    assert len({id(one) for one in added}) == 1
    assert adding_at_once.read == library.films() == added[:1]


def test_films_that_several_threads_add_under_one_name_get_names_of_their_own(adding_at_once, make_video, tmp_path):
    paths = [grey_film(make_video, tmp_path / str(number) / "film.mp4", [30 * number] * 3) for number in range(THREADS)]
    names = {one.name for one in at_once(lambda number: adding_at_once.library.add(paths[number]))}
    assert names == {row.name for row in adding_at_once.store.films()}
    assert len(names) == THREADS


def test_films_are_added_removed_and_listed_by_several_threads(make_video, tmp_path):
    paths = [grey_film(make_video, tmp_path / f"{number}.mp4", [30 * number] * 3) for number in range(THREADS)]
    with serving(tmp_path / "page") as server:
        library = server.library

        def work(number):
            for _ in range(10):
                added = library.add(paths[number])
                assert added.name == str(number)
                library.viewed = added.id
                for one in library.films():
                    try:
                        assert library.film(one.id).name == one.name
                    except RefusalError:  # another thread has removed it
                        assert one.name != str(number)
                listed = server.client.get("/api/films").json()["films"]
                assert str(number) in [one["name"] for one in listed]
                library.remove(added)
            library.add(paths[number])

        at_once(work)
        server.wait()
        assert sorted(one.name for one in library.films()) == sorted(row.name for row in server.store.films())
        assert [one.state for one in library.films()] == ["ready"] * THREADS


def test_threads_that_ask_for_stills_of_one_film_get_their_own(make_video, number_of, tmp_path):
    path, kept = make_video(tmp_path / "film.mp4", 20), stills.Stills()
    found = at_once(lambda number: [kept.get("film", path, (7 * number + step) % 20) for step in range(5)])
    kept.close()
    for number, images in enumerate(found):
        seen = [number_of(cv2.imdecode(np.frombuffer(one, np.uint8), cv2.IMREAD_COLOR)) for one in images]
        assert seen == [(7 * number + step) % 20 for step in range(5)]
