"""Measure a trained run, and what else stands in the documentation: python -m lab.runs COMMAND."""

import string
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer

from colocam import Localizer
from colocam.boxes.iou import iou
from colocam.config.options import Options, Smooth
from colocam.data.frame_cache import clip_frames
from colocam.data.truth import Truth, read_truth
from colocam.evaluation.metrics import average_precision, calibration_error, steadiness
from colocam.inference.localizer import open_network
from colocam.labels.review import doubts, queue, signs
from colocam.labels.table import TableRows
from colocam.run import open_run
from colocam.types import Clip, Localization

SMOOTH: tuple[Smooth, ...] = ("none", "online", "offline")
NOWHERE = (np.nan,) * 4
CHECKED = (0.05, 0.1, 0.2)
"""Shares of the frames that a person checks."""
FIRST, LAST = 49406, 49407
"""Tokens around a sentence, the last two of CLIP's vocabulary."""

Ints = npt.NDArray[np.int64]
Split = Annotated[str, typer.Argument(help="train, val or test")]
Device = Annotated[str, typer.Argument(help="cpu or cuda")]

app = typer.Typer(help=__doc__, add_completion=False)


def _right(found: Localization, clip: Clip, truth: Truth) -> bool:
    """Whether the box has an IoU of at least one half with a true box."""
    true = truth.boxes(clip.name, found.frame)
    return bool(true and found.box) and bool(iou(np.array(found.box), np.array(true), inclusive=True).max() >= 0.5)


def _clips(folder: Path, split: str) -> tuple[list[Clip], tuple[str, ...]]:
    """Clips of a split, and all tags."""
    catalogue = open_run(folder, "cpu").catalogue
    return [clip for clip in catalogue.clips if clip.split == split], tuple(catalogue.tags)


@app.command(name="presence")
def measure_presence(run: Path, boxes: Path, split: Split = "test") -> None:
    """Measure presence for each mode of --smooth, without and with the tag.

    Average precision for empty frames (higher is better), calibration error (lower is better) and, where the tag is
    not given, the share of the frames with the object that get its class. Then the effect of --presence: boxes per
    empty frame before → after, share of the frames with the object that lose their box, and CorLoc (mean over classes,
    percent; a hidden box is a miss) before → after.
    """
    (clips, tags), truth = _clips(run, split), read_truth(boxes)
    network, card = open_network(run, "cpu")
    for smooth, told in product(SMOOTH, (False, True)):
        rows = []
        for number, clip in enumerate(clips):
            localizer = Localizer(network, card, options=Options(smooth=smooth, tag=clip.tag if told else None))
            for found in localizer(clip.path):
                there = bool(truth.boxes(clip.name, found.frame))
                right = _right(found, clip, truth)
                rows.append((found.presence, number, there, found.box is not None, right, found.tag == clip.tag))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        probability, video, (present, box, hit, named) = columns[0], columns[1], columns[2:]
        tag_of = np.array([clip.tag for clip in clips])[video]
        print(
            f"{smooth}, tag {'given' if told else 'not given'}: average precision "
            f"{average_precision(-probability, ~present):.3f}, error {calibration_error(probability, present):.3f}"
            + ("" if told else f", class right {100 * named[present].mean():.1f} %")
        )
        for bound in (0.1, 0.25, 0.5):
            shown = probability >= bound
            before, after = (
                100 * np.mean([one[(tag_of == tag) & present].mean() for tag in tags]) for one in (hit, hit & shown)
            )
            print(
                f"  --presence {bound}: boxes per empty frame {box[~present].mean():.2f} → "
                f"{(box & shown)[~present].mean():.2f} ({(~present).sum()} frames); hidden "
                f"{100 * (box & ~shown)[present].mean():.1f} % of the others, CorLoc {before:.1f} → {after:.1f}",
                flush=True,
            )


@app.command(name="steadiness")
def measure_steadiness(run: Path, boxes: Path, split: Split = "val", device: Device = "cpu") -> None:
    """Measure boxes over time for each mode of --smooth, with the tag.

    CorLoc (mean over classes, percent), change, jitter and sudden shifts of the boxes, in pixels of the original
    video, at the stored threshold. The first row gives the same numbers for the true boxes: the part that is motion.
    """

    def tell(what: str, corloc: float, tracks: Sequence[Sequence[Sequence[float]]]) -> None:
        still = steadiness([np.array(track, float) for track in tracks])
        numbers = f"change {still.change:.3f}, jitter {still.jitter:.3f}, shifts {still.shifts} of {still.pairs}"
        print(f"{what:8} CorLoc {corloc:.1f}, {numbers}", flush=True)

    (clips, tags), truth = _clips(run, split), read_truth(boxes)
    network, card = open_network(run, device)
    frames = {clip.name: [frame.index for frame in clip_frames(clip)] for clip in clips}
    tell("truth", 100.0, [[next(iter(truth.boxes(name, at)), NOWHERE) for at in frames[name]] for name in frames])
    for smooth in SMOOTH:
        right: dict[str, list[bool]] = {tag: [] for tag in tags}
        tracks = []
        for clip in clips:
            localizer = Localizer(network, card, options=Options(smooth=smooth, tag=clip.tag))
            found = [one for _, one in localizer.stream(clip_frames(clip))]
            tracks.append([one.box or NOWHERE for one in found])
            right[clip.tag] += [_right(one, clip, truth) for one in found if truth.boxes(clip.name, one.frame)]
        tell(smooth, 100 * float(np.mean([np.mean(hits) for hits in right.values() if hits])), tracks)


@app.command(name="review")
def measure_review(run: Path, boxes: Path, split: Split = "test") -> None:
    """Measure the review queue: the share of the wrong frames that a person finds who checks 5, 10 and 20 %.

    A frame is wrong if its box has an IoU below 0.5 with every true box, or if it has a box and no object. Seen: wrong
    frames among the checked ones. Found: also the other wrong frames of the same unbroken stretch, since a person who
    sees a wrong box looks at its neighbors. Compared are the queue, the order by doubt alone, frames at even
    distances, random frames (mean of 200 orders), and the best possible order.
    """
    (clips, _), truth, localizer = _clips(run, split), read_truth(boxes), Localizer.load(run, "cpu")
    tables, wrong = [], []
    for clip in clips:
        found = list(localizer(clip.path))
        tables.append(TableRows.of(found))
        for one in found:
            there = bool(truth.boxes(clip.name, one.frame))
            wrong.append(not _right(one, clip, truth) if there else one.box is not None)
    video = np.repeat(np.arange(len(tables)), [len(rows.frame) for rows in tables])
    pts = np.concatenate([rows.pts for rows in tables])
    error, doubt, frames = np.array(wrong), doubts(signs(tables)), len(wrong)
    # Number of the unbroken stretch of wrong frames from 1, 0 for right frames.
    before = np.append(False, error[:-1] & (np.diff(video) == 0))
    stretch = np.where(error, np.cumsum(error & ~before), 0)

    def shares(order: Ints) -> tuple[float, float]:
        """Share of the wrong frames among the checked ones, and in stretches of which one was checked."""
        touched = np.setdiff1d(stretch[order], [0])
        return error[order].sum() / error.sum(), np.isin(stretch, touched).sum() / error.sum()

    def tell(name: str, found: Sequence[Sequence[float]]) -> None:
        cells = (
            f"{s:.0%}: {100 * seen:.0f} / {100 * all_:.0f}" for s, (seen, all_) in zip(CHECKED, found, strict=True)
        )
        print(f"{name:15}", "   ".join(cells))

    counts, generator = [round(share * frames) for share in CHECKED], np.random.default_rng(0)
    sizes = np.bincount(stretch[error])
    largest = np.argsort(-sizes[stretch], kind="stable")
    ideal = np.array([at for at in largest if error[at] and (at == 0 or stretch[at] != stretch[at - 1])], int)
    orders: dict[str, list[Ints]] = {
        "queue": [np.array(queue(doubt, video, pts, counts[-1]))],
        "by doubt alone": [np.argsort(-doubt, kind="stable")],
        "random": [generator.permutation(frames) for _ in range(200)],
    }
    print(f"{frames} frames, {error.sum()} wrong in {len(sizes) - 1} stretches; % of the wrong ones seen / found")
    for name, several in orders.items():
        tell(name, [np.array([shares(order[:count]) for order in several]).mean(0).tolist() for count in counts])
    tell("even distances", [shares((np.arange(count) / count * frames).astype(int)) for count in counts])
    tell("best possible", [(min(c, error.sum()) / error.sum(), shares(ideal[:c])[1]) for c in counts])


@app.command()
def random_clip(folder: Path, blocks: int = 12) -> None:
    """Write a CLIP of the shape of ViT-B/16 with random weights, in half precision.

    Its maps mean nothing. It shows that clip-es runs end to end on a network of the true size where no trained weights
    are at hand. Tokens are letters, because the tokenizer's vocabulary comes with the trained weights.
    """
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer  # noqa: PLC0415 - slow to import

    letters = [*string.ascii_lowercase, *string.digits, *".,-"]
    words = [*letters, *(letter + "</w>" for letter in letters)]
    vocabulary = {word: index for index, word in enumerate(words)} | {"<|startoftext|>": FIRST, "<|endoftext|>": LAST}
    CLIPTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    depth: dict[str, Any] = {"num_hidden_layers": blocks}
    torch.manual_seed(0)
    text, vision = {**depth, "bos_token_id": FIRST, "eos_token_id": LAST}, {**depth, "patch_size": 16}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision)).half().save_pretrained(folder)


if __name__ == "__main__":
    app()
