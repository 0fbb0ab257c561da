"""Hash of a network's weights, for the keys of caches."""

import hashlib

import torch
from torch import nn


def content_hash(module: nn.Module) -> str:
    """SHA-256 of a module's names and weights; the device and the memory layout do not matter."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode() + str(tensor.dtype).encode() + str(tuple(tensor.shape)).encode())
        digest.update(
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        )
    return digest.hexdigest()
