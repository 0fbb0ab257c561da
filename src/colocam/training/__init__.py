"""Training: stage 1 (classifier) and stage 2 (decoder) in one loop, which can be interrupted and resumed exactly."""

from colocam.training.train import train

__all__ = ["train"]
