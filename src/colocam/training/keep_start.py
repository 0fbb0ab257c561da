"""Decide what becomes of the decoder of the model that a training starts from, and say how long it takes.

A decoder says where the object is, not what it is, so one that was trained on other tags may fit new ones. The tags of
held-out videos say whether it does: the head that was fitted to whole frames reads crops around the decoder's boxes. If
the tags are as likely in the crops, the boxes hold the objects. Then the decoder stays as it is if the tags are also
easy to read there; objects that the network hardly knows are worth learning from these boxes (docs/method/start.md).

Tests: tests/training/test_start.py.
"""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.config.card import Card
from colocam.maps.mapper import map_batches, model_mapper
from colocam.models import Classifier
from colocam.models.localizer_net import expanded
from colocam.models.model_file import Model
from colocam.run import Run
from colocam.temporal.path import boxes_of_shots
from colocam.training.loop import Journal
from colocam.training.prior_decoder import prior_decoder_of, with_prior
from colocam.training.rounds import OWN, best_model
from colocam.training.start import open_start
from colocam.training.validation import Validator
from colocam.utils.progress import say
from colocam.utils.tensors import save_checkpoint

MARGIN = 0.15
"""How much less likely the tags may be in crops, for the decoder to stay, or in maps, for the class to be read there.

It is a difference of cross-entropies."""
FAMILIAR = 0.35
"""Cross-entropy of the tags in crops, relative to that of chance, up to which the network knows the objects well.

Measured: 0.09 and 0.14 for objects of the ready model's own classes, 0.70 for creatures of a game."""
TIMED = 4
"""Frames of the step that is timed."""


Way = Literal["keep", "own", "train"]
"""What becomes of the decoder: it stays as it is, learns from its own boxes, or is trained like any other."""
OUTCOMES: dict[Way, str] = {
    "keep": "knows these tags ({}), so it stays as it is",
    "own": "finds these tags, but hardly knows them ({}), so it is trained on its own boxes",
    "train": "does not find these tags ({}), so it is trained",
}


class Likelihood(NamedTuple):
    """Cross-entropy of the tags of held-out frames.

    Attributes:
        whole: of whole frames.
        crops: of crops around a decoder's boxes.
        chance: ln K for K tags.
    """

    whole: float
    crops: float
    chance: float

    @property
    def way(self) -> Way:
        """What suits the decoder."""
        if self.crops > self.whole + MARGIN:
            return "train"  # its boxes miss the objects
        return "keep" if self.crops <= FAMILIAR * self.chance else "own"


def with_classifier(run: Run, classifier: Classifier, method: str) -> Model | None:
    """The classifier of a run with the decoders that it starts from; None: it starts from none.

    The prior decoder is that of ``method``, if it has learned from a prior of its own.
    """
    model = open_start(run.config)
    if model is None:
        return None
    prior = prior_decoder_of(run, method, model)
    net = with_prior(classifier, model.card.decoder, prior, map_size=model.card.map_size)
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    changed = {"tags": run.catalogue.tags, "prior_decoder": prior and prior.channels}
    return Model(net.to(run.device).eval(), model.card.model_copy(update=changed))


def way_of_decoder(run: Run, classifier: Classifier, method: str, validator: Validator, journal: Journal) -> Way:
    """Decide what becomes of the decoder of the start; one that stays is written as the checkpoint ``best``."""
    start, folder = run.config.start, run.folder / method
    candidate = with_classifier(run, classifier, method)
    if (folder / OWN).is_dir():
        return "own"
    if start is None or candidate is None or (folder / "last.json").is_file():
        return "train"
    way = start.decoder
    if way == "auto":
        likely = likelihood(candidate, validator)
        journal.rewind(journal.length)  # the line of an interrupted run
        journal.add(method, "val", 0, 0, crops=likely.crops, whole=likely.whole)
        journal.flush()
        way = likely.way
        sentence = f"cross-entropy of held-out tags {likely.crops:.2f} in its boxes, {likely.whole:.2f} in whole frames"
        say(f"{method}: the decoder of {start.model} {OUTCOMES[way].format(sentence)}")
    if way == "keep":
        folder.mkdir(exist_ok=True)
        _keep(candidate, folder)
    return way


def keep_better(run: Run, classifier: Classifier, method: str, start: Model, validator: Validator) -> None:
    """Keep the decoder of the start after all, where training on its own boxes made held-out tags less likely in them.

    Only if ``start.decoder`` is ``auto``. ``run`` has the settings of the start.
    """
    folder = run.folder / method
    if run.config.start is None or run.config.start.decoder != "auto":
        return
    trained = best_model(run, classifier, method, folder)
    trained.net.to(run.device).eval()
    before, after = likelihood(start, validator).crops, likelihood(trained, validator).crops
    better = after <= before
    told = f"cross-entropy of held-out tags {after:.3f} in boxes of the trained decoder, {before:.3f} before"
    say(f"{method}: {told}, so it {'has the new' if better else 'keeps its old'} weights")
    if not better:
        _keep(start, folder)


def _keep(model: Model, folder: Path) -> None:
    """Write the decoder of the start, and how its maps are read, as the checkpoint ``best``."""
    card = model.card
    kept = {"epoch": 0, "step": 0, "score": 0.0, "threshold": card.threshold, "color_mean": card.color_mean}
    post = {"focus": card.focus, "chooser": card.chooser}
    save_checkpoint(folder, "best", model.net.decoder.state_dict(), kept | post)


def with_settings_of(run: Run, card: Card) -> Run:
    """The run with the color mean, focus, chooser and threshold of a model whose decoder learns from its own boxes."""
    settings = {
        "color_mean": card.color_mean,
        "focus": card.focus,
        "chooser": card.chooser,
        "threshold": card.threshold,
    }
    localizer = run.config.localizer.model_copy(update=settings)
    return replace(run, config=run.config.model_copy(update={"localizer": localizer}))


@torch.inference_mode()
def reading_helps(model: Model, validator: Validator) -> bool:
    """Whether the tags of the validation frames are likely enough, compared with whole frames.

    A head for crops was fitted to them, so it has to be at least as good. The map may be worse by :data:`MARGIN`: held-
    out videos are often filmed where training videos were, and a whole frame also shows the surroundings.

    Args:
        model: has a crop head, or reads the class in the map.
        validator: has the frames.
    """
    net = model.net.to(validator.device).eval()
    object_alone, whole = validator.entropies(lambda frames: (net(frames).class_logits, net.classifier.logits(frames)))
    where = "from crops" if model.card.crop_head else "in maps"
    say(f"class: cross-entropy of held-out tags {object_alone:.2f} read {where}, {whole:.2f} from whole frames")
    return bool(object_alone <= whole + (0.0 if model.card.crop_head else MARGIN))


@torch.inference_mode()
def likelihood(model: Model, validator: Validator) -> Likelihood:
    """How likely the tags of the validation frames are in whole frames, and in crops around the boxes of a model.

    The decoder is asked by itself: where a prior weighs its maps, boxes are tighter and crops have less context.
    """
    net, card, samples, device = model.net, model.card, validator.samples, validator.device
    with net.unweighed():
        levels = [torch.from_numpy(maps) for maps in map_batches(model_mapper(model), samples, card.size, device)]
    maps = torch.cat(levels).numpy()
    corners, has_box = boxes_of_shots(maps, card.threshold, card.chooser, samples.indices.clips.numpy())
    boxes = torch.from_numpy(corners).float() / maps.shape[1]
    boxes[~torch.from_numpy(has_box)] = torch.tensor([0.0, 0.0, 1.0, 1.0])
    losses: list[Tensor] = []
    at = 0
    for frames, classes in samples.batches(card.size, device):
        crops = expanded(boxes[at : at + len(frames)].to(device))
        read = net.classifier.logits(frames), net.classifier.head(net.crop_features(frames, crops))
        losses.append(torch.stack([F.cross_entropy(logits, classes, reduction="none") for logits in read]))
        at += len(frames)
    whole, crops_loss = torch.cat(losses, 1).mean(1).tolist()
    return Likelihood(whole, crops_loss, math.log(len(model.card.tags)))


def say_time(run: Run, frames: int, clips: int) -> None:
    """Print how long a training that starts from a model will take, from the time of a pass and of a step here."""
    config, model = run.config, open_start(run.config)
    if model is None:
        return
    net = model.net.to(run.device)
    size = config.frames.crop
    device = run.device
    images = torch.zeros(TIMED, 3, size, size, dtype=torch.uint8, device=device)

    def seconds(*, step: bool) -> float:
        begin = time.perf_counter()
        with torch.set_grad_enabled(step):
            if step:
                net.maps(images)[0].mean().backward()  # type: ignore[no-untyped-call]
            else:
                net.classifier.encoder(images)
        return (time.perf_counter() - begin) / TIMED

    times = {step: min(seconds(step=step) for _ in range(2)) for step in (False, True)}
    settings = config.stage2(config.methods[0]) if config.methods else config.localizer
    head = config.classifier
    head_passes = min(frames, clips * head.frames_per_clip) * head.views * (2 if settings.crop_head else 1)
    steps = settings.rounds * settings.epochs * settings.sequences_per_clip * clips * settings.frames
    steps += frames * (settings.rounds - 1) // 2  # labels of the next round take a pass without a gradient
    first, second = (round(count * each / 60, 1) for count, each in ((head_passes, times[False]), (steps, times[True])))
    say(
        f"about {first:g} minutes for the class ({head_passes} passes); then, unless the decoder of the start already "
        f"knows your tags, about {second:g} for boxes ({steps} frames), by the time of one pass here"
    )
