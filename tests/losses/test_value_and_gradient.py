"""Value and gradient without autograd: what forward and autograd give, and nothing of autograd's."""

import pytest
import torch

from colocam.errors import ColocamError
from colocam.losses import CoLocLoss, CRFLoss

SEQUENCES = torch.tensor([1, 0, 1, 2, 0])  # the last of three has one frame
LOSSES = [
    (CoLocLoss(40.0), (SEQUENCES,)),
    (CoLocLoss(40.0, divisor="energy"), (SEQUENCES, 3)),
    (CoLocLoss(40.0, "constant"), (torch.arange(5),)),
    (CRFLoss(40.0, 100.0), ()),
    (CRFLoss(40.0, 0.5), ()),
]

each_loss = pytest.mark.parametrize(("loss", "arguments"), LOSSES)


def inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (5, 3, 4, 6), generator=generator)
    return frames, torch.rand(5, 4, 6, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()


@each_loss
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_they_are_those_of_autograd(loss, arguments, dtype):
    frames, maps = inputs(dtype)
    expected = loss(frames, maps, *arguments)
    value, gradient = loss.value_and_gradient(frames, maps, *arguments)
    torch.testing.assert_close(value, expected.detach(), rtol=0, atol=0)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, maps)[0], rtol=0, atol=0)
    assert gradient.dtype == dtype


@each_loss
def test_no_graph_is_built(loss, arguments):
    frames, maps = inputs()
    for result in loss.value_and_gradient(frames, maps, *arguments):
        assert not result.requires_grad
        assert result.grad_fn is None
    assert torch.is_grad_enabled()
    assert maps.grad is None


def test_several_terms_take_one_backward_pass():
    frames, maps = inputs(torch.float64)
    logits = torch.logit(maps.detach()).requires_grad_()
    (color, crf), weights = (LOSSES[0], LOSSES[4]), (0.3, 2e-3)
    total = sum(
        weight * loss(frames, logits.sigmoid(), *arguments)
        for weight, (loss, arguments) in zip(weights, (color, crf), strict=True)
    )
    expected = torch.autograd.grad(total, logits)[0]
    maps = logits.sigmoid()
    gradients = [loss.value_and_gradient(frames, maps, *arguments)[1] for loss, arguments in (color, crf)]
    maps.backward(weights[0] * gradients[0] + weights[1] * gradients[1])
    torch.testing.assert_close(logits.grad, expected)


@each_loss
def test_wrong_input_is_named_as_by_forward(loss, arguments):
    frames, maps = inputs()
    broken = maps.detach().clone()
    broken[1, 2, 3] = torch.nan
    for bad in ((frames, broken, *arguments), (frames, maps[:2], *arguments), (frames[:, :2], maps, *arguments)):
        with pytest.raises(ColocamError) as by_forward:
            loss(*bad)
        with pytest.raises(ColocamError) as directly:
            loss.value_and_gradient(*bad)
        assert str(directly.value) == str(by_forward.value)
        assert str(directly.value).startswith(f"{type(loss).__name__}: ")
