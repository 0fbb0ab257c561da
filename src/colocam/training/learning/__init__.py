"""Learn from corrections: what people said about frames changes the thresholds, the head and the decoder of a run."""

from colocam.training.learning.card import QuickLearner
from colocam.training.learning.lesson import Learning, learn, learning_without

__all__ = ["Learning", "QuickLearner", "learn", "learning_without"]
