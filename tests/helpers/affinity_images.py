"""Images that products are checked on: photographs that scikit-image ships, and adversarial ones."""

import numpy as np
import torch
from matplotlib import colormaps
from skimage import data, transform


def photograph(name, size=224):
    image = getattr(data, name)()[..., :3].astype(np.float64)
    return torch.tensor(transform.resize(image, (size, size), anti_aliasing=True, preserve_range=True).round())


def gray(name, size=224, kind="gray"):
    """A photograph without colors: as cameras for infrared, heat, or black and white show it."""
    level = photograph(name, size).mean(-1, keepdim=True)
    generator = torch.Generator().manual_seed(0)
    if kind == "noisy gray":  # a level more or less in each channel
        level = level.round() + torch.randint(-1, 2, (size, size, 3), generator=generator)
    elif kind == "dark gray":
        level = 0.25 * level
    elif kind == "faint gray":
        level = 100 + 0.1 * level
    elif kind == "black and white":
        level = 4 * (level - 128) + 128
    elif kind != "gray":
        return torch.tensor(255 * colormaps[kind](level[..., 0].numpy() / 255)[..., :3]).round()
    return level.clamp(0, 255).round().expand(size, size, 3)


GRAYS = ["gray", "noisy gray", "dark gray", "faint gray", "black and white", "inferno", "hot", "jet"]


def adversarial(name, size=224):
    generator = torch.Generator().manual_seed(0)
    shape = (size, size, 3)
    if name == "constant":
        return torch.tensor([101.0, 37.0, 222.0]).expand(shape)
    if name == "noise":
        return torch.randint(0, 256, shape, generator=generator).float()
    if name == "between levels":
        return torch.rand(shape, generator=generator) * 255
    if name == "two colors":
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
