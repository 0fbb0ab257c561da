"""The index of a film: every frame, its time and its shot; a proxy with the same frames; exact frames by index."""

import io

import cv2
import numpy as np
import pytest

from colocam.serve.film_data import FilmIndex, even_size, load_index, same_times, save_index
from colocam.serve.stills import BEHIND, Stills


def test_a_damaged_index_is_none_or_whole(tmp_path):
    whole = FilmIndex(np.arange(6), np.arange(6) / 25, np.arange(6) / 25, np.arange(6) == 3, np.array([2]), None)
    path = tmp_path / "index.npz"
    save_index(path, whole)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [data[:at] for at in range(0, len(data), 29)]
    damaged += [data[:at] + bytes([rng.integers(256)]) + data[at + 1 :] for at in range(0, len(data), 7)]
    header = io.BytesIO()
    np.save(header, np.arange(6))
    damaged += [header.getvalue(), header.getvalue().replace(b"{", b"(", 1)]  # no archive; a header that is no literal
    found = []
    for one in damaged:
        path.write_bytes(one)
        found.append(load_index(path, None))
    assert None in found
    for one in found:
        assert one is None or all(np.array_equal(a, b) for a, b in zip(one[:5], whole[:5], strict=True))


def test_stills_are_the_frames_of_their_index_in_any_order(make_video, number_of, tmp_path):
    film = make_video(tmp_path / "film.mp4", 50, options={"bf": "3"})
    stills = Stills()
    for number in (0, 7, 3, 49, 49 - BEHIND + 1, 20, 21, 0, 48):
        image = cv2.imdecode(np.frombuffer(stills.get("film", film, number), np.uint8), cv2.IMREAD_COLOR)
        assert number_of(image) == number
    assert stills.get("film", film, 50) is None
    for other in range(4):  # more films than are kept open
        assert stills.get(f"film {other}", film, other) is not None
    stills.close()


def test_times_that_do_not_rise_keep_number_and_order():
    rising = np.arange(5) / 25
    assert same_times(rising + 3, rising)
    assert not same_times(rising, rising[:-1])
    assert not same_times(rising, rising * 1.1)
    assert not same_times(rising, rising[::-1])
    assert same_times(np.zeros(5), rising)


@pytest.mark.parametrize(("size", "proxy"), [((63, 47), (64, 48)), ((3840, 2160), (1280, 720)), ((1, 1), (2, 2))])
def test_the_size_of_a_proxy_is_even_and_bounded(size, proxy):
    assert even_size(*size, 1280) == proxy
