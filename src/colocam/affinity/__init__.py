"""Products ``W·v`` with dense Gaussian affinities between pixels, in time and memory linear in the number of pixels.

>>> import torch
>>> from colocam.affinity import color_product
>>> rgb = torch.randint(0, 256, (50_000, 3))
>>> degree = color_product(rgb, torch.ones(50_000, 1), sigma=15.0)   # Σ_j exp(-|c_i - c_j|² / 2σ²), (50000, 1)

``products`` has the public functions, ``engine`` chooses the implementation: ``cuda`` (Triton), ``cpu`` (Numba) or
``grid`` (plain PyTorch). ``reference`` is the exact product in float64.
"""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.affinity.products import bilateral_product, color_product
    from colocam.affinity.reference import dense_bilateral_product, dense_color_product

__all__ = ["bilateral_product", "color_product", "dense_bilateral_product", "dense_color_product"]

__getattr__, __dir__ = lazy_names(  # these import torch, which the colour mean of an ONNX model's maps does not need
    __name__,
    {
        "bilateral_product": "colocam.affinity.products",
        "color_product": "colocam.affinity.products",
        "dense_bilateral_product": "colocam.affinity.reference",
        "dense_color_product": "colocam.affinity.reference",
    },
)
