"""Learning curves of corrections: python -m lab.corrections RUN… --boxes truth.csv --out curves.jsonl.

Boxes of one split (default: val) are corrections. Each run learns from 2, 5, 10, 20 and 50 of them a class, chosen at
random, at even distances (``colocam review --for learning``), or by doubt (``--for errors``), with more and more parts,
and is evaluated on another split (default: test).

Each line of the output is one cell: CorLoc under the four protocols, the seed of the run, how frames were chosen, boxes
a class (null: all), parts. Cells that are there already are not computed again, so a stopped command continues.
``--part 0/12`` … ``--part 11/12`` are twelve processes that share the cells and the file.

The parts are added one after another: threshold, + seeds, + projection, and all. ``few-shot`` is the
rival: a new decoder on the same boxes, all of them, without CAMs and other frames. ``quick`` is ``QuickLearner``.
``seconds`` is the time of ``colocam learn``, and for ``quick`` that of the last ten corrections.

Without runs it prints tables of the lines in ``--out``, for each data set and setting: CorLoc under the four protocols,
mean ± standard deviation over seeds. ``--figure curves.svg`` draws the first: ``tags-only`` against boxes a class.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from colocam.data.frame_cache import CachedClip
from colocam.data.truth import read_truth
from colocam.evaluation.metrics.protocols import PROTOCOLS
from colocam.evaluation.run_evaluation import EvaluationSet, measure, methods_of_run, open_evaluation_set
from colocam.inference import Localizer
from colocam.labels import Correction, LeftOut, write_corrections
from colocam.labels.review import APART, PURPOSES, doubts, signs
from colocam.labels.table import TableRows
from colocam.models.decoder import make_decoder
from colocam.models.model_file import Model, load_model
from colocam.report.run_review import frames_of
from colocam.run import Run, open_run
from colocam.training.learning.card import QuickLearner, learned_card, observe
from colocam.training.learning.decoder import learning_task
from colocam.training.learning.frames import CorrectedFrames, corrected_frames
from colocam.training.learning.lesson import PARTS, Learning, learn, learning_without
from colocam.training.learning.report import Learned, write_run
from colocam.training.loop import Journal, fit
from colocam.types import Split
from lab.study.figures import Lines, Series, draw
from lab.study.tables import Entry, Measured, Table, markdown

COUNTS = (2, 5, 10, 20, 50)
ADDED = ("threshold", "seeds", "projection")
ALL, BEFORE, FEW_SHOT, QUICK = "all", "before", "few-shot", "quick"
ORDERS = ("random", "learning", "errors")
STEPS = 200
CEILING_STEPS = 600
"""Steps with all boxes of the split, which are more than a person corrects."""
FEW_SHOT_STEPS = 600
"""Steps of a decoder that starts anew."""


class Cell(NamedTuple):
    """What is measured: how frames are chosen, boxes a class (None: all), and what is learned."""

    order: str
    boxes: int | None
    parts: str


def plan() -> list[Cell]:
    """All cells, those at random frames first."""
    cells = [Cell("random", 0, BEFORE), Cell("random", 10, QUICK), Cell("random", None, ALL)]
    cells += [Cell(order, count, ALL) for order in ORDERS for count in COUNTS]
    cells += [Cell("random", count, FEW_SHOT) for count in (*COUNTS, None)]
    return cells + [Cell(order, count, name) for order in ORDERS for count in COUNTS for name in ADDED]


def learning(cell: Cell, steps: int) -> Learning:
    """The parts of a cell."""
    if cell.parts == ALL:
        return learning_without(steps=CEILING_STEPS if cell.boxes is None else steps)
    kept = ADDED[: ADDED.index(cell.parts) + 1]
    return learning_without(*(set(PARTS) - set(kept)), steps=steps)


class Frames(NamedTuple):
    """(n,) indices of videos, indices of frames in them, and their times in seconds."""

    video: np.ndarray[Any, np.dtype[np.int64]]
    frame: np.ndarray[Any, np.dtype[np.int64]]
    pts: np.ndarray[Any, np.dtype[np.float64]]


class Bench:
    """One run, its frames to correct and its frames to evaluate on."""

    def __init__(self, folder: Path, boxes: Path, split: Split, test: Split, device: str | None) -> None:
        self.run, self.truth, self.split, self.test = open_run(folder, device), read_truth(boxes), split, test
        self.boxes, self.seed = boxes, self.run.config.seed

    @cached_property
    def clips(self) -> list[CachedClip]:
        """The clips whose frames may be corrected."""
        return self.run.clips(self.split)

    @cached_property
    def evaluated(self) -> EvaluationSet:
        """The frames to evaluate on."""
        return open_evaluation_set(self.run, self.boxes, self.test)

    @cached_property
    def frames(self) -> Frames:
        """All frames that can be corrected: those with a true box."""
        parts = []
        for number, clip in enumerate(self.clips):
            rows = [at for at, frame in enumerate(clip.index.tolist()) if self.truth.boxes(clip.clip.name, frame)]
            parts.append((np.full(len(rows), number), clip.index[rows].astype(np.int64), clip.pts[rows]))
        return Frames(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @cached_property
    def doubt(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Doubt of the model about each of :attr:`frames`."""
        localizer, tables = Localizer.load(self.run.folder, str(self.run.device)), []
        for number in np.unique(self.frames.video).tolist():
            wanted = set(self.frames.frame[self.frames.video == number].tolist())
            found = [one for _, one in localizer.stream(frames_of(self.clips[number]))]
            tables.append(TableRows.of([one for one in found if one.frame in wanted]))
        return doubts(signs(tables))

    def corrections(self, cell: Cell) -> list[Correction]:
        """True boxes of the frames that the cell chooses, as corrections; ties and random order follow the seed."""
        frames, chosen = self.frames, list[int]()
        tags = np.array([clip.clip.tag for clip in self.clips])[frames.video]
        rng = np.random.default_rng(self.seed)
        for tag in self.run.catalogue.tags:
            own = np.flatnonzero(tags == tag)
            count = len(own) if cell.boxes is None else min(cell.boxes, len(own))
            if cell.order == "random":
                chosen += rng.permutation(own)[:count].tolist()
            elif count:
                doubt = self.doubt[own] if cell.order == "errors" else np.zeros(len(own))
                found = PURPOSES[cell.order](doubt, frames.video[own], frames.pts[own], count, APART)
                chosen += own[found].tolist()
        return [self._correction(row) for row in chosen]

    def _correction(self, row: int) -> Correction:
        clip, frame = self.clips[self.frames.video[row]].clip, int(self.frames.frame[row])
        boxes = tuple(self.truth.boxes(clip.name, frame))
        return Correction(clip.name, frame, float(self.frames.pts[row]), "box", clip.tag, boxes, origin="truth")

    def measure(self, cell: Cell, steps: int) -> dict[str, object]:
        """CorLoc under each protocol after the run has learned what the cell says, and what was kept."""
        corrections = [] if cell.parts == BEFORE else self.corrections(cell)
        with tempfile.TemporaryDirectory() as name:
            folder, start, told = Path(name), time.perf_counter(), dict[str, object]()
            path = write_corrections(folder / "corrections.csv", corrections)
            if cell.parts == BEFORE:
                new = self.run.folder
            elif cell.parts == FEW_SHOT:
                new = few_shot(self.run, corrections, path, folder, steps)
            elif cell.parts == QUICK:
                quick = QuickLearner(self.run.folder, str(self.run.device))
                quick(corrections[:-10])
                start = time.perf_counter()
                model = Model(quick.model.net, quick(corrections))
                told["seconds"] = round(time.perf_counter() - start, 2)
                new = write_model(self.run, model, corrected_frames(self.run, corrections, LeftOut()), path, folder)
            else:
                how, device = learning(cell, steps), str(self.run.device)
                learned = learn(self.run.folder, [path], folder / "new", how, device=device)
                new, told = learned.folder, {"kept": learned.kept, "held_out": learned.held_out}
            told.setdefault("seconds", round(time.perf_counter() - start, 2))
            opened = open_run(new, str(self.run.device))
            mapper = methods_of_run(opened, [])[opened.config.methods[0]]
            found = measure(self.evaluated, mapper).corloc
        averages = {protocol: round(result.average, 3) for protocol, result in found.items()}
        return {"corloc": averages, "used": len(corrections), **told}


def few_shot(run: Run, corrections: list[Correction], path: Path, folder: Path, steps: int) -> Path:
    """A run whose decoder was trained on the boxes alone: the whole box is foreground, all outside is background.

    It may use all boxes: none are held out. It has the projection term, too, and its threshold is chosen by the boxes.
    """
    method, config, model = run.config.methods[0], run.config, load_model(run.folder)
    frames = corrected_frames(run, corrections, LeftOut())
    net = model.net
    net.decoder = make_decoder(net.classifier.encoder, config.stage2(method).decoder)
    net.to(run.device)
    task = learning_task(config, method, net, frames, [], steps, replay=False, complete=False, core=0.0)
    fit(task, folder / "few-shot", Journal(folder / "few-shot.jsonl"))
    seen = observe(Model(net.eval(), model.card), frames, config.frames, run.device)
    card = learned_card(model.card, seen, frames, threshold=True, presence=False)
    return write_model(run, Model(net, card), frames, path, folder)


def write_model(run: Run, model: Model, frames: CorrectedFrames, path: Path, folder: Path) -> Path:
    """A run folder with that model."""
    new = folder / "new"
    new.mkdir()
    write_run(run, model, Learned(new, [], len(frames), 0, LeftOut()), frames, [path], new)
    return new


Cells = dict[tuple[str, int | None, str], list[dict[str, Any]]]
"""Order, boxes a class and parts → one line per seed."""
CURVES = {
    ("random", ALL): "corrections, random frames",
    ("learning", ALL): "corrections, even distances",
    ("errors", ALL): "corrections, by doubt",
    ("random", FEW_SHOT): "the same boxes alone",
}


def read_curves(path: Path) -> dict[str, Cells]:
    """The lines of a file by data set and settings; the rival and the model before have no settings of learning."""
    results: defaultdict[str, Cells] = defaultdict(dict)
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        steps = [one.partition("=")[2] for one in line["settings"] if one.startswith("few_shot_steps=")]
        own = [one for one in line["settings"] if not one.startswith("few_shot_steps=")]
        parts = ", ".join([line["parts"], *(f"{count} steps" for count in steps)])
        key = (line["order"], line["boxes"], parts)
        results[", ".join([line["data"], *own])].setdefault(key, []).append(line)
    return {name: {**results.get(name.split(", ")[0], {}), **cells} for name, cells in list(results.items())}


def table_of(title: str, cells: Cells) -> Table:
    """One row for each cell."""
    names = [BEFORE, QUICK, *ADDED, ALL, FEW_SHOT]
    rows: list[tuple[Entry, ...]] = []
    for key in sorted(cells, key=lambda key: (key[1] is None, key[1] or 0, names.index(key[2].split(",")[0]), key[0])):
        (order, boxes, parts), lines = key, cells[key]
        scores = [Measured(tuple(line["corloc"][protocol] for line in lines)) for protocol in PROTOCOLS]
        kept = f"{sum('decoder' in line.get('kept', ()) for line in lines)}"
        seconds = f"{np.mean([line['seconds'] for line in lines]):.0f}"
        if parts == BEFORE:
            order = kept = seconds = "–"
        rows.append((order, parts, "all" if boxes is None else f"{boxes}", *scores, kept, seconds, f"{len(lines)}"))
    columns = ("frames", "parts", "boxes a class", *PROTOCOLS, "kept decoders", "seconds", "seeds")
    return Table("curves", title, columns, tuple(rows))


def figure_of(cells: Cells) -> Lines:
    """``tags-only`` against boxes a class: each order of frames, the few-shot rival, the model before, the ceiling."""
    places = sorted({0, *(boxes for _, boxes, _ in cells if boxes)})

    def at(order: str, boxes: int | None, parts: str) -> Measured | None:
        lines = cells.get((order, boxes, parts), [])
        return Measured(tuple(line["corloc"]["tags-only"] for line in lines)) if lines else None

    before, ceiling = at("random", 0, BEFORE), at("random", None, ALL)
    series = [
        Series(title, [before if n == 0 and parts == ALL else at(order, n, parts) for n in places])
        for (order, parts), title in CURVES.items()
    ]
    levels = {"before": before, "all boxes of the split": ceiling}
    series += [Series(name, [level] * len(places), published=True) for name, level in levels.items()]
    return Lines("corrected boxes a class", "CorLoc tags-only, %", tuple(map(float, places)), tuple(series))


def show(path: Path, figure: Path | None) -> None:
    """Print the tables, and draw the first."""
    results = read_curves(path)
    for name, cells in results.items():
        print(markdown(table_of(name, cells)))
    if figure is not None:
        curves = next((cells for cells in results.values() if ("random", 10, ALL) in cells), None)
        figure.write_text(draw(figure_of(curves or next(iter(results.values()))))[0], encoding="utf-8")


def main(arguments: argparse.Namespace) -> None:
    """Compute the cells that are missing."""
    out: Path = arguments.out
    done = {_key(json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines()} if out.is_file() else set()
    benches = [Bench(run, arguments.boxes, arguments.split, arguments.test, arguments.device) for run in arguments.runs]
    cells = [one for one in plan() if one.boxes in arguments.counts and one.order in arguments.orders]
    cells = [one for one in cells if one.parts in arguments.parts]
    part, parts = arguments.part
    for cell, bench in [(cell, bench) for cell in cells for bench in benches][part::parts]:
        steps = arguments.few_shot_steps if cell.parts == FEW_SHOT else arguments.steps
        usual = {BEFORE: steps, FEW_SHOT: FEW_SHOT_STEPS}.get(cell.parts, STEPS)
        settings = [f"{'few_shot_' * (cell.parts == FEW_SHOT)}steps={steps}"] if steps != usual else []
        job: dict[str, object] = {"data": arguments.name, "seed": bench.seed, "settings": settings, **cell._asdict()}
        if _key(job) in done:
            continue
        torch.manual_seed(bench.seed)
        line = json.dumps(job | bench.measure(cell, steps))
        with out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _key(line: dict[str, object]) -> str:
    return json.dumps([line[name] for name in ("data", "seed", "settings", *Cell._fields)])


def _counts(text: str) -> list[int | None]:
    return [None if part == "all" else int(part) for part in text.split(",")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", help="run folders, one for each seed")
    parser.add_argument("--boxes", type=Path, help="true boxes of both splits")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines; lines are added")
    parser.add_argument("--name", default="demo", help="of the data, in the lines")
    parser.add_argument("--split", default="val", help="whose boxes are corrections")
    parser.add_argument("--test", default="test", help="what is evaluated")
    parser.add_argument("--counts", type=_counts, default=[0, *COUNTS, None], help="boxes a class, or all")
    parser.add_argument("--orders", type=lambda text: text.split(","), default=list(ORDERS))
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[BEFORE, QUICK, *ADDED, ALL, FEW_SHOT])
    parser.add_argument("--steps", type=int, default=STEPS, help="of the decoder")
    parser.add_argument("--few-shot-steps", type=int, default=FEW_SHOT_STEPS, help="of the rival")
    parser.add_argument("--part", type=lambda text: [*map(int, text.split("/"))], default=[0, 1], help="index/number")
    parser.add_argument("--device")
    parser.add_argument("--figure", type=Path, help="SVG")
    given = parser.parse_args()
    if given.runs:
        main(given)
    else:
        show(given.out, given.figure)
