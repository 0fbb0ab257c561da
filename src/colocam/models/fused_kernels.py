"""The Triton kernel of :mod:`colocam.models.folding`.

Tests: tests/test_triton_interpreter.py, tests/gpu/test_gpu.py.
"""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

import triton
import triton.language as tl

BLOCK = 2048
"""Values of one program."""


@triton.jit
def add_relu(y, bias, other, count, channels: tl.constexpr, shortcut: tl.constexpr, block: tl.constexpr):
    """Y = relu(y + bias + other) in place, channels last. Programs: count / block."""
    start = tl.program_id(0).to(tl.int64) * block
    i = start + tl.arange(0, block)
    channel = ((start % channels).to(tl.int32) + tl.arange(0, block)) % channels
    mask = i < count
    x = tl.load(y + i, mask, 0.0).to(tl.float32) + tl.load(bias + channel).to(tl.float32)
    if shortcut:
        x += tl.load(other + i, mask).to(tl.float32)
    tl.store(y + i, tl.where(x < 0, 0.0, x), mask)
