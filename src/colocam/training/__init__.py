"""Stage 1 (classifier) and stage 2 (decoder): one loop, interruptible and exact when resumed."""

from colocam.training.train import train

__all__ = ["train"]
