"""What every room may use: files, checkpoints, progress, devices, randomness.

Private but for ``colocam.utils.extensions``.
"""

__all__: list[str] = []
