"""The networks: classifier g, decoder f, both together as the localizer, and the files of a trained model."""

from colocam.models.classifier import Classification, Classifier, Encoder, make_classifier
from colocam.models.localizer_net import LocalizerNet, MapsAndLogits, foreground

__all__ = ["Classification", "Classifier", "Encoder", "LocalizerNet", "MapsAndLogits", "foreground", "make_classifier"]
