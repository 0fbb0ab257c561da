"""How good are these weights? From tags and maps alone, or from boxes where a user has some."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from colocam.data.samples import Boxes, Samples
from colocam.models import Classifier, LocalizerNet
from colocam.training.loop import Validation


@dataclass(frozen=True, slots=True)
class Judge:
    """Measures a model on the validation frames.

    Attributes:
        samples: validation frames.
        boxes: true boxes per frame in model pixels, or None without any.
        size: side of the model's input in pixels.
        device: where the model is.
    """

    samples: Samples
    boxes: list[Boxes] | None
    size: int
    device: torch.device

    @torch.no_grad()
    def classifier(self, classifier: Classifier) -> Validation:
        """Accuracy on tags."""
        logits, classes = [], []
        for frames, c in self.samples.batches(self.size, self.device):
            logits.append(classifier(frames).logits)
            classes.append(c)
        z, y = torch.cat(logits), torch.cat(classes)
        loss = float(F.cross_entropy(z, y))
        return Validation({"best": -loss}, {"loss": loss, "accuracy": float((z.argmax(1) == y).float().mean())})

    def localizer(self, net: LocalizerNet) -> Validation:
        return Validation({"best": 0.0}, {})
