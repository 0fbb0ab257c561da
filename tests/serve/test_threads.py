"""Shared state of the server: several threads change it at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from colocam.serve import stills
from colocam.serve.guard import RefusalError
from tests.helpers.served_library import gray_video, serving

THREADS = 4


def at_once(work, count=THREADS):
    """Results of ``work(number)`` in several threads."""
    with ThreadPoolExecutor(count) as pool:
        return [one.result() for one in [pool.submit(work, number) for number in range(count)]]


@pytest.fixture
def adding_at_once(tmp_path, monkeypatch):
    """A library whose videos several threads add at once: all know the id of theirs before one is added."""
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


def test_a_video_that_several_threads_add_is_one_video_and_read_once(adding_at_once, make_video, tmp_path):
    library, path = adding_at_once.library, gray_video(make_video, tmp_path / "video.mp4", range(50, 53))
    added = at_once(lambda _: library.add(path))
    assert len({id(one) for one in added}) == 1
    assert adding_at_once.read == library.videos() == added[:1]


def test_videos_that_several_threads_add_under_one_name_get_names_of_their_own(adding_at_once, make_video, tmp_path):
    paths = [
        gray_video(make_video, tmp_path / str(number) / "video.mp4", [30 * number] * 3) for number in range(THREADS)
    ]
    names = {one.name for one in at_once(lambda number: adding_at_once.library.add(paths[number]))}
    assert names == {row.name for row in adding_at_once.store.videos()}
    assert len(names) == THREADS


def test_videos_are_added_removed_and_listed_by_several_threads(make_video, tmp_path):
    paths = [gray_video(make_video, tmp_path / f"{number}.mp4", [30 * number] * 3) for number in range(THREADS)]
    with serving(tmp_path / "page") as server:
        library = server.library

        def work(number):
            for _ in range(10):
                added = library.add(paths[number])
                assert added.name == str(number)
                library.viewed = added.id
                for one in library.videos():
                    try:
                        assert library.video(one.id).name == one.name
                    except RefusalError:  # another thread has removed it
                        assert one.name != str(number)
                listed = server.client.get("/api/videos").json()["videos"]
                assert str(number) in [one["name"] for one in listed]
                library.remove(added)
            library.add(paths[number])

        at_once(work)
        server.wait()
        assert sorted(one.name for one in library.videos()) == sorted(row.name for row in server.store.videos())
        assert [one.state for one in library.videos()] == ["ready"] * THREADS


def test_threads_that_ask_for_stills_of_one_video_get_their_own(make_video, number_of, tmp_path):
    path, kept = make_video(tmp_path / "video.mp4", 20), stills.Stills()
    found = at_once(lambda number: [kept.get("video", path, (7 * number + step) % 20) for step in range(5)])
    kept.close()
    for number, images in enumerate(found):
        seen = [number_of(cv2.imdecode(np.frombuffer(one, np.uint8), cv2.IMREAD_COLOR)) for one in images]
        assert seen == [(7 * number + step) % 20 for step in range(5)]
