"""Networks without their training: classifier g, localizer f, and the file a trained model lives in."""

from colocam.models.classifier import Classification, Classifier
from colocam.models.encoder import Encoder
from colocam.models.localizer_net import LocalizerNet, MapsAndLogits, foreground

__all__ = ["Classification", "Classifier", "Encoder", "LocalizerNet", "MapsAndLogits", "foreground"]
