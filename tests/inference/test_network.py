"""What a Localizer asks of a network: answers, and to begin with a batch before those of the last are taken."""

import numpy as np

from colocam.inference.network import begin

PICTURES = np.zeros((2, 4, 4, 3), np.uint8)


def test_a_network_without_a_beginning_is_asked_once():
    asked = []

    def network(pictures):
        asked.append(len(pictures))
        return "answers"

    wait = begin(network, PICTURES)
    assert asked == [2]
    assert (wait(), wait()) == ("answers", "answers")
    assert asked == [2]


def test_a_network_with_a_beginning_of_its_own_is_not_called():
    class Own:
        def begin(self, pictures):
            return lambda: len(pictures)

    assert begin(Own(), PICTURES)() == 2
