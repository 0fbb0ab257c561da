"""The index of a video: every frame, its time and its shot; a proxy with the same frames; exact frames by index."""

import io

import numpy as np
import pytest

from colocam.serve.video_data import VideoIndex, even_size, load_index, same_times, save_index


def test_a_damaged_index_is_none_or_whole(tmp_path):
    whole = VideoIndex(np.arange(6), np.arange(6) / 25, np.arange(6) / 25, np.arange(6) == 3, np.array([2]), None)
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
