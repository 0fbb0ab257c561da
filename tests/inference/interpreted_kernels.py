"""The Triton kernels of inference on the CPU, in Triton's interpreter: run by tests/test_triton_interpreter.py."""

import pytest
import torch

from colocam.models import fused_kernels


@pytest.mark.parametrize("shortcut", [False, True])
def test_bias_shortcut_and_relu(shortcut):
    generator = torch.Generator().manual_seed(0)
    y, other = (
        torch.randn(2, 6, 5, 7, generator=generator).contiguous(memory_format=torch.channels_last) for _ in "ab"
    )
    bias = torch.randn(6, generator=generator)
    expected = (y + bias[:, None, None] + (other if shortcut else 0)).relu()
    fused_kernels.add_relu[-(-y.numel() // 64),](y, bias, other, y.numel(), channels=6, shortcut=shortcut, block=64)
    torch.testing.assert_close(y, expected)
