"""What a Localizer asks of a network: answers, and to begin with a batch before those of the last are taken."""

import numpy as np
import pytest

from colocam.boxes import to_8bit
from colocam.inference.network import AS_THEY_ARE, Finish, begin

ANSWERS = ("logits", "maps", "peaks")
PICTURES = np.zeros((2, 4, 4, 3), np.uint8)


def test_a_network_without_a_beginning_is_asked_once():
    asked = []

    def network(pictures):
        asked.append(len(pictures))
        return ANSWERS

    wait = begin(network, PICTURES)
    assert asked == [2]
    assert (wait(), wait()) == (ANSWERS, ANSWERS)
    assert asked == [2]


def test_a_network_with_a_beginning_of_its_own_is_not_called():
    class Own:
        def begin(self, pictures, finish):
            return lambda: (len(pictures), finish)

    assert begin(Own(), PICTURES)() == (2, AS_THEY_ARE)
    assert begin(Own(), PICTURES, "asked")() == (2, "asked")


@pytest.mark.parametrize("levels", [False, True])
def test_maps_are_completed_by_colour_for_a_network_that_cannot(levels):
    """Left half red with a bright spot, right half blue: the spot spreads over the red of both frames, not the blue."""
    pictures = np.zeros((2, 8, 8, 3), np.uint8)
    pictures[:, :, :4, 0], pictures[:, :, 4:, 2] = 200, 200
    maps = np.zeros((2, 8, 8), np.float32)
    maps[0, 2:4, 1:3] = 1
    given = to_8bit(maps) if levels else maps
    logits, completed, _ = begin(lambda _: (7, given, None), pictures, Finish(np.zeros(2, np.int64)))()
    assert logits == 7
    mean = 4 / 64  # of the red pixels of both frames
    np.testing.assert_allclose(completed[1, :, :4], 2 / 3 * mean, atol=1e-3)
    np.testing.assert_allclose(completed[0, 2:4, 1:3], 1 / 3 + 2 / 3 * mean, atol=1e-3)
    np.testing.assert_allclose(completed[:, :, 4:], 0, atol=1e-3)
