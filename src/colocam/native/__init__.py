"""Loops over pixels in C, for what is several times slower in NumPy or OpenCV; None where they were not built.

Whoever uses ``kernels`` has the same function in Python beside it: the reference of tests, and what runs without C.

Private.
"""

try:
    from colocam.native import kernels as kernels  # type: ignore[attr-defined]
except ImportError:  # installed without a C compiler
    kernels = None

__all__: list[str] = []
