"""Networks that are not trained, with batch norms as uneven as after training."""

import torch
from torch import nn


def unsettle(net, seed=1):
    """Give batch norms statistics and weights that are not those of an identity; return the network in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in (
                (module.running_mean, -0.5, 0.5),
                (module.running_var, 0.5, 2.0),
                (module.weight.data, 0.5, 1.5),
                (module.bias.data, -0.5, 0.5),
            ):
                tensor.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)
    return net.eval()
