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


def add_crop_head(run):
    """Let the model of a run read the class from crops, with random weights."""
    torch.manual_seed(0)
    model = load_model(run)
    net = LocalizerNet(model.net.classifier, model.card.decoder, map_size=model.card.map_size, crop_head=True)
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    save_model(run, Model(net, model.card.model_copy(update={"crop_head": True})))
