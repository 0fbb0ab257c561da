"""Learning curves of corrections: python scripts/corrections.py RUN BOXES --out curves.jsonl.

Boxes of one split (default: val) are corrections, chosen in three orders: random, at even distances, and the queue of
``colocam review --for learning``. A run learns from 2, 5, 10, 20 and 50 of them a class, with more and more parts, and
is evaluated on another split (default: test). Each line of the output is one result: order, boxes a class, parts, seed,
and CorLoc under the four protocols. Lines that are there already are not computed again.

The parts are added one after another: threshold, + per class, + seeds, + projection, + replay. The rival ``few-shot``
trains a new decoder on the same boxes, without CAMs. The ceiling is all boxes of the split.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from colocam.corrections import Correction, LeftOut, write_corrections
from colocam.data.truth import Truth, read_truth
from colocam.evaluation.run_evaluation import evaluate
from colocam.inference import Localizer
from colocam.models import LocalizerNet
from colocam.models.model_file import Model, load_model
from colocam.review.doubt import FOR_LEARNING, Rows, doubts, signs
from colocam.review.purposes import PURPOSES
from colocam.review.queue import APART
from colocam.review.run_review import frames_of, rows_of
from colocam.run import Run, open_run
from colocam.training.journal import Journal
from colocam.training.learn import PARTS, Learning, learn, learning_without
from colocam.training.learn_agreement import learnt_card, observe
from colocam.training.learn_decoder import DecoderLearning, learning_task
from colocam.training.learn_frames import corrected_frames
from colocam.training.learn_report import Learnt, write_run
from colocam.training.loop import fit
from colocam.types import Split

COUNTS = (2, 5, 10, 20, 50)
ADDED = ("threshold", "per_class", "seeds", "projection", "replay")
ORDERS = ("random", "even", "learning")
FEW_SHOT = "few-shot"
FEW_SHOT_STEPS = 1000


def variants() -> dict[str, Learning]:
    """What is learnt, from the cheapest part to all of them."""
    alone = {name: learning_without(*(set(PARTS) - set(ADDED[: place + 1]))) for place, name in enumerate(ADDED)}
    return {**alone, "all": Learning()}


def candidates(run: Run, truth: Truth, split: Split) -> Rows:
    """All labelled frames with a box of a split, with what the model finds in them."""
    localizer, parts = Localizer.load(run.folder, str(run.device)), []
    for number, clip in enumerate(run.clips(split)):
        rows = rows_of(number, [found for _, found in localizer.stream(frames_of(clip))])
        own = np.array([bool(truth.boxes(clip.clip.name, frame)) for frame in rows.frame.tolist()])
        parts.append(Rows(*(column[own] for column in rows)))
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def choose(run: Run, rows: Rows, split: Split, order: str, count: int, seed: int) -> list[int]:
    """Rows of ``count`` frames of each class, in the order of their choice."""
    clips = run.clips(split)
    tags, chosen = np.array([clip.clip.tag for clip in clips]), []
    rng = np.random.default_rng(seed)
    doubt = doubts(signs(rows), FOR_LEARNING) + 1e-6 * rng.random(len(rows.frame))
    for tag in run.catalogue.tags:
        own = np.flatnonzero(tags[rows.video] == tag)
        if order == "random":
            chosen += rng.permutation(own)[:count].tolist()
        elif len(own):
            found = PURPOSES[order](doubt[own], rows.video[own], rows.pts[own], min(count, len(own)), APART)
            chosen += own[found].tolist()
    return chosen


def corrections_of(run: Run, truth: Truth, rows: Rows, split: Split, chosen: list[int]) -> Iterator[Correction]:
    """True boxes as corrections."""
    clips = run.clips(split)
    for row in chosen:
        clip, frame = clips[rows.video[row]].clip, int(rows.frame[row])
        boxes = tuple(truth.boxes(clip.name, frame))
        yield Correction(clip.name, frame, float(rows.pts[row]), "box", clip.tag, boxes, origin="truth")


def measure(run: Run, corrections: list[Correction], how: Learning, boxes: Path, test: Split) -> dict[str, object]:
    """CorLoc of the run that learnt, under each protocol, and what was kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_corrections(Path(folder) / "corrections.csv", corrections)
        learnt = learn(run.folder, [path], Path(folder) / "new", how, device=str(run.device))
        found = evaluate(learnt.folder, boxes, split=test, cams=(), device=str(run.device))
        method = run.config.methods[0]
        seconds = sum(stage.seconds for stage in learnt.stages)
        corloc = {protocol: result.average for protocol, result in found.methods[method].items()}
        return {"corloc": corloc, "kept": learnt.kept, "seconds": seconds}


def few_shot(run: Run, corrections: list[Correction], boxes: Path, test: Split) -> dict[str, object]:
    """CorLoc of a new decoder that was trained on the boxes alone, without CAMs, clip-mates and other videos."""
    method, config, model = run.config.methods[0], run.config, load_model(run.folder)
    frames = corrected_frames(run, corrections, LeftOut())
    net = LocalizerNet(model.net.classifier, config.stage2(method).decoder, map_size=config.frames.map_size)
    net.to(run.device)
    task = learning_task(config, method, net, frames, [], DecoderLearning(FEW_SHOT_STEPS, replay=False), run.device)
    with tempfile.TemporaryDirectory() as folder:
        fit(task, Path(folder) / "few-shot", Journal(Path(folder) / "few-shot.jsonl"))
        trained = Model(net.eval(), model.card)
        seen = observe(trained, frames, config.frames, run.device)
        card = learnt_card(model.card, seen, frames, threshold=True, per_class=False, presence=False)
        new = Path(folder) / "new"
        new.mkdir()
        path = write_corrections(Path(folder) / "corrections.csv", corrections)
        learnt = Learnt(new, [], len(frames), 0, LeftOut())
        write_run(run, Model(net, card), learnt, frames, [path], new)
        found = evaluate(new, boxes, split=test, cams=(), device=str(run.device))
    return {"corloc": {protocol: result.average for protocol, result in found.methods[method].items()}}


def main(arguments: argparse.Namespace) -> None:
    """Compute the lines that are missing."""
    run, truth, out = open_run(arguments.run, arguments.device), read_truth(arguments.boxes), arguments.out
    done = {line_key(json.loads(line)) for line in out.read_text().splitlines()} if out.is_file() else set()
    rows = candidates(run, truth, arguments.split)
    every = len(rows.frame)
    jobs: list[tuple[str, int, str, int]] = [
        (order, count, name, seed)
        for seed in arguments.seeds
        for order in arguments.orders
        for count in arguments.counts
        for name in arguments.parts
    ]
    jobs += [("ceiling", every, "all", seed) for seed in arguments.seeds[: 1 if arguments.ceiling else 0]]
    for order, count, name, seed in jobs:
        job = {"order": order, "boxes": count, "parts": name, "seed": seed}
        if line_key(job) in done:
            continue
        torch.manual_seed(seed)
        chosen = list(range(every)) if order == "ceiling" else choose(run, rows, arguments.split, order, count, seed)
        corrections = list(corrections_of(run, truth, rows, arguments.split, chosen))
        if name == FEW_SHOT:
            result = few_shot(run, corrections, arguments.boxes, arguments.test)
        else:
            result = measure(run, corrections, variants()[name], arguments.boxes, arguments.test)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(job | {"used": len(corrections)} | result) + "\n")
        print(json.dumps(job | result), flush=True)


def line_key(line: dict[str, object]) -> tuple[object, ...]:
    """What tells two lines apart."""
    return tuple(line[name] for name in ("order", "boxes", "parts", "seed"))


def listed(text: str) -> list[int]:
    """Whole numbers between commas."""
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("boxes", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--split", default="val")
    parser.add_argument("--test", default="test")
    parser.add_argument("--counts", type=listed, default=list(COUNTS))
    parser.add_argument("--seeds", type=listed, default=[0, 1, 2])
    parser.add_argument("--orders", type=lambda text: text.split(","), default=list(ORDERS))
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[*variants(), FEW_SHOT])
    parser.add_argument("--ceiling", action="store_true", help="also learn from all boxes of the split")
    parser.add_argument("--device")
    main(parser.parse_args())
