"""Maps on one scale, at the size of the frame."""

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.cams import full_size, min_max


@given(hnp.arrays(np.float32, (3, 4, 5), elements=st.floats(-1e6, 1e6, width=32)))
def test_min_max_against_numpy(values):
    found = min_max(torch.from_numpy(values)).numpy()
    for one, scaled in zip(values.astype(np.float64), found, strict=True):
        spread = one.max() - one.min()
        expected = (one - one.min()) / spread if spread > 0 else np.zeros_like(one)
        np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-5)
        assert scaled.min() == 0
        assert scaled.max() == (1 if spread else 0)


def test_full_size_normalizes_before_it_enlarges():
    cams = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0)) * 7 - 2
    found = full_size(cams, 12)
    scaled = (cams - cams.amin((1, 2), keepdim=True)) / (cams.amax((1, 2), True) - cams.amin((1, 2), True))
    torch.testing.assert_close(found, F.interpolate(scaled[:, None], size=12, mode="bilinear")[:, 0])
    assert found.shape == (2, 12, 12)
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1
