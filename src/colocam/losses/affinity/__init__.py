"""Products ``W·v`` with dense Gaussian affinities between pixels, in time and memory linear in the number of pixels.

>>> import torch
>>> from colocam.losses.affinity import color_product
>>> rgb = torch.randint(0, 256, (50_000, 3))
>>> degree = color_product(rgb, torch.ones(50_000, 1), sigma=15.0)   # Σ_j exp(-|c_i - c_j|² / 2σ²), (50000, 1)

``engine`` has the products and chooses the implementation: ``cuda`` (Triton) or ``cpu`` (C). Those named ``dense`` are
exact, in float64.
"""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.losses.affinity.engine import (
        bilateral_product,
        color_product,
        dense_bilateral_product,
        dense_color_product,
    )

__all__ = ["bilateral_product", "color_product", "dense_bilateral_product", "dense_color_product"]

__getattr__, __dir__ = lazy_names(  # these import torch, which the color mean of an ONNX model's maps does not need
    __name__, dict.fromkeys(__all__, "colocam.losses.affinity.engine")
)
