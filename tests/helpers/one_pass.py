"""One pass of a network, however it is owned."""

import numpy as np


def ids_of(images):
    """Ids of a stream of its own."""
    return np.stack([np.full(len(images), 7), np.arange(len(images))], 1).astype(np.int64)


def one_pass(network, images):
    """The output of ``network``, or of the network that a :class:`Passes` owns, for images (B, S, S, 3)."""
    owned = getattr(network, "_network", network)
    return owned.submit([images], ids_of(images)).result()
