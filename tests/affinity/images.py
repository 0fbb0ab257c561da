"""Images that products are checked on: photographs that scikit-image ships, and adversarial ones."""

import numpy as np
import torch
from skimage import data, transform


def photograph(name, size=224):
    image = getattr(data, name)()[..., :3].astype(np.float64)
    return torch.tensor(transform.resize(image, (size, size), anti_aliasing=True, preserve_range=True).round())


def adversarial(name, size=224):
    generator = torch.Generator().manual_seed(0)
    shape = (size, size, 3)
    if name == "constant":
        return torch.tensor([101.0, 37.0, 222.0]).expand(shape)
    if name == "noise":
        return torch.randint(0, 256, shape, generator=generator).float()
    if name == "between levels":
        return torch.rand(shape, generator=generator) * 255
    if name == "two colours":
        mask = torch.rand((size, size, 1), generator=generator) < 0.4
        return torch.where(mask, torch.tensor([90.0, 120.0, 33.0]), torch.tensor([100.0, 130.0, 36.0]))
    assert name == "saturated"
    return torch.randint(0, 2, shape, generator=generator).float() * 255


def blob(size=224):
    """A realistic map: one object, soft at its border."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, size, dtype=torch.float64)] * 2, indexing="ij")
    return torch.sigmoid(20 * (0.3 - torch.hypot(y - 0.5, x - 0.4)))


def relative_error(found, exact):
    """Relative L2 error of each channel (the last axis)."""
    return ((found - exact).norm(dim=0) / exact.norm(dim=0)).tolist()
