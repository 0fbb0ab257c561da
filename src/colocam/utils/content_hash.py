"""Which weights are these? For caches of what a network has computed."""

import hashlib

import torch
from torch import nn


def content_hash(module: nn.Module) -> str:
    """SHA-256 of a module's weights: equal weights, equal hash, wherever they are stored."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode() + str(tensor.dtype).encode() + str(tuple(tensor.shape)).encode())
        digest.update(
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        )
    return digest.hexdigest()
