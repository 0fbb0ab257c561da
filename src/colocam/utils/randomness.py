"""Random generators as functions of (seed, purpose, counters): a resumed run gets the same numbers."""

import zlib

import numpy as np
import torch


def generator(seed: int, purpose: str, *counters: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator whose state depends only on the arguments."""
    entropy = [seed, zlib.crc32(purpose.encode()), *counters]
    state = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
    return torch.Generator(device=device).manual_seed(state & (2**63 - 1))
