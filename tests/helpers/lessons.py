"""What a model can learn from: corrections that are true, and a head that reads the class from crops."""

import torch

from colocam.data.truth import read_truth
from colocam.labels import Correction
from colocam.models import LocalizerNet
from colocam.models.model_file import Model, load_model, save_model
from colocam.run import open_run


def of_truth(run, collection, *splits):
    """Corrections of all labeled frames."""
    truth, made = read_truth(collection.truth), []
    for clip in open_run(run).catalogue.clips:
        for frame in truth.labeled(clip.name) if clip.split in splits else ():
            boxes = tuple(truth.boxes(clip.name, frame))
            made.append(Correction(clip.name, frame, None, "box" if boxes else "none", clip.tag, boxes))
    return made


def read_class_in_map(run, how=True):
    """Let the model of a run read the class in the map, which is made to peak: about 0 or 1, 1 in a fifth of noise."""
    model = load_model(run)
    card = model.card
    net = LocalizerNet(model.net.classifier, card.decoder, map_size=card.map_size, class_in_map=how).eval()
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    peak_maps(net, card.size)
    save_model(run, Model(net, card.model_copy(update={"class_in_map": how, "crop_head": False})))


@torch.no_grad()
def peak_maps(net, size):
    """Scale the last convolution of the decoder, so that maps of noise are about 1 in a fifth and about 0 elsewhere."""
    frames = torch.randint(0, 256, (8, 3, size, size), generator=torch.Generator().manual_seed(0)).float()
    head, maps = net.decoder.head, net(frames).map_logits
    difference = maps[:, 1] - maps[:, 0]
    factor = 10 / difference.std()
    head.weight.mul_(factor)
    head.bias.mul_(factor)
    head.bias[1] -= factor * difference.quantile(0.8)


def add_crop_head(run):
    """Let the model of a run read the class from crops, with random weights."""
    torch.manual_seed(0)
    model = load_model(run)
    net = LocalizerNet(model.net.classifier, model.card.decoder, map_size=model.card.map_size, crop_head=True)
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    save_model(run, Model(net, model.card.model_copy(update={"crop_head": True})))
