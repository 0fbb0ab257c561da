"""Evaluate, report, review, curves for TensorBoard; benchmarks and studies, which are in a clone and in no wheel.

Tests: tests/cli/test_cli.py, tests/evaluation/test_prediction_evaluation.py.
"""

import sys
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Annotated

from typer import Argument, Option

from colocam.cli import completion
from colocam.cli.shared_options import (
    Boxes,
    ConfigFile,
    Device,
    Overrides,
    Preset,
    split_of,
    with_options,
)
from colocam.config.options import Options
from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.types import SPLITS
from colocam.utils.progress import say

BENCHMARKS = ("affinity", "boxes", "cam", "inference", "train")
CLONE = Path(__file__).resolve().parents[3]
"""The repository, where this package lies in its folder ``src``."""


@with_options("smooth", "color_mean", "focus", "motion", "looks", "chooser", "refine", "prior", "device")
def evaluate(
    runs: Annotated[
        list[Path], Argument(help="Run folders, or ONNX files with --dense; for several, mean ± std is printed.")
    ],
    boxes: Boxes = None,
    dense: Annotated[
        Path | None, Option(help="Whole shots with true boxes: a table of frames with boxes, or an index folder.")
    ] = None,
    split: Annotated[
        str | None,
        Option(
            help="Videos to use: train, val or test. Default: test; with --dense, all but train.",
            autocompletion=completion.one_of(*SPLITS),
        ),
    ] = None,
    cams: Annotated[
        str | None,
        Option(
            help="CAM methods, e.g. cam,layercam, or all. Default: the one the seeds came from.",
            autocompletion=completion.cams,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            help="Folder for the results of --dense, with one subfolder per run if there are several. Default: RUN; "
            "for NAME.onnx, NAME-evaluation in the current folder.",
        ),
    ] = None,
    *,
    options: Options,
) -> None:
    """Evaluate runs on frames with true boxes.

    With --boxes, prints CorLoc under each protocol and writes RUN/evaluation.json.

    With --dense, runs everything from file to smoothed box, without and with the tag, and writes RUN/dense.json.

    With --refine, also evaluates a segmenter's boxes, in separate tables and in RUN/dense-refined.json.

    For boxes or maps from another program, use 'colocam score'.
    """
    if boxes is None and dense is None:
        raise ColocamError("evaluate needs true boxes: give --boxes TABLE, or --dense MANIFEST for whole shots")
    if out is not None and dense is None:
        raise ArgumentError("out", "is the folder for the results of --dense: give --dense too, or drop --out")
    folders = _result_folders(runs, out)
    chosen = None if split is None else split_of(split)
    if boxes is not None:
        from colocam.cams import classifier_cams
        from colocam.evaluation.run_evaluation import evaluate as evaluate_run
        from colocam.report.evaluation_tables import print_evaluations

        named = None if cams is None else [name.strip() for name in cams.split(",")]
        named = classifier_cams() if cams == "all" else named
        done = [evaluate_run(run, boxes, split=chosen or "test", cams=named, options=options) for run in runs]
        print_evaluations(done)
    if dense is not None:
        from colocam.evaluation.dense import evaluate_dense
        from colocam.report.evaluation_tables import print_dense

        for segmenter in dict.fromkeys((None, options.refine)):
            how = replace(options, refine=segmenter)
            print_dense([evaluate_dense(run, dense, split=chosen, options=how, out=folders[run]) for run in runs])


def _result_folders(runs: list[Path], out: Path | None) -> dict[Path, Path | None]:
    """Where the results of each run go; None: where they go by default."""
    if out is None or len(runs) == 1:
        return dict.fromkeys(runs, out)
    names = [run.resolve().stem for run in runs]
    if len(set(names)) < len(names):
        raise ArgumentError("out", f"needs runs with different names, got {', '.join(names)}: evaluate them one by one")
    return {run: out / name for run, name in zip(runs, names, strict=True)}


def score(
    predictions: Annotated[
        Path, Argument(help="Table of boxes (clip, frame, x1, y1, x2, y2), or folder of maps <clip>/<frame>.png.")
    ],
    boxes: Annotated[Path, Option(help="CSV or parquet of true boxes: clip, frame, present, x1, y1, x2, y2.")],
    split: Annotated[
        str,
        Option(help="Which videos to evaluate on: train, val or test.", autocompletion=completion.one_of(*SPLITS)),
    ] = "test",
    manifest: Annotated[
        Path | None, Option(help="Manifest with the tags of the clips, unless the table of true boxes has them.")
    ] = None,
    size: Annotated[int | None, Option(help="Compare boxes in SIZE × SIZE pixels (published: 224).", min=1)] = None,
    masks: Annotated[Path | None, Option(help="Folder of true masks, for the PxAP of maps.")] = None,
    json: Annotated[Path | None, Option(help="Also write the result to this JSON file.")] = None,
) -> None:
    """Evaluate predicted boxes or maps from any program.

    Prints CorLoc, MaxBoxAcc and, with masks, PxAP. A frame without a prediction counts as wrong.
    """
    from colocam.evaluation.prediction_evaluation import evaluate_predictions
    from colocam.report.evaluation_tables import print_predictions
    from colocam.utils.files import refuse_replacing, write_json

    if json is not None:
        refuse_replacing(json, b'"max_box_acc": ', "result of 'colocam score'")
    result = evaluate_predictions(predictions, boxes, manifest=manifest, split=split_of(split), size=size, masks=masks)
    print_predictions(result)
    if json is not None:
        write_json(json, result.to_json())


def review(
    sources: Annotated[
        list[Path], Argument(help="Tables of 'colocam localize', or folders of them; or one run folder.")
    ],
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file. Default: review.csv or RUN/review.csv.")] = None,
    share: Annotated[float, Option(help="Share of the frames to list.")] = 0.05,
    apart: Annotated[
        float, Option(help="Frames within this many seconds of a listed one get a lower priority; 0 turns this off.")
    ] = 0.5,
    split: Annotated[
        str, Option(help="Which videos of a run: train, val or test.", autocompletion=completion.one_of(*SPLITS))
    ] = "test",
    purpose: Annotated[
        str,
        Option(
            "--for",
            help="errors: frames that are probably wrong; learning: frames to correct, from all videos.",
            autocompletion=completion.one_of("errors", "learning"),
        ),
    ] = "errors",
    device: Device = None,
) -> None:
    """List the frames with the most doubtful boxes, and why; or, for learning, frames from all videos.

    For a run folder, also stores the images for its report.
    """
    from colocam.labels import review_tables

    if not any((source / "config.yaml").is_file() for source in sources):
        say(f"wrote {review_tables(sources, out or Path('review.csv'), share=share, apart=apart, purpose=purpose)}")
        return
    from colocam.report.run_review import review_run

    chosen = split_of(split)
    if len(sources) > 1:
        raise ColocamError("give either tables or one run folder")
    queue = review_run(sources[0], out, split=chosen, share=share, apart=apart, purpose=purpose, device=device)
    say(f"wrote {queue}; next: colocam report {sources[0]}")


def report(run: Annotated[Path, Argument(help="Run folder.")]) -> None:
    """Write RUN/report/index.html: results, examples and training curves."""
    from colocam.report import write_report

    say(f"wrote {write_report(run)}")


def tensorboard(
    run: Annotated[Path, Argument(help="Run folder, finished or not.")],
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder for the event files. Default: RUN/tensorboard.")
    ] = None,
) -> None:
    """Write the training curves of RUN/metrics.jsonl as TensorBoard event files."""
    from colocam.evaluation.result import write_events

    say(f"wrote {(folder := write_events(run, out))}; now: tensorboard --logdir {folder}")


def _from_laboratory(module: str) -> ModuleType:
    """Import a module of the laboratory."""
    if not (CLONE / "lab" / "measuring.py").is_file():
        raise ColocamError(
            "benchmarks and studies are not part of the wheel: clone the repository and run 'make install' there"
        )
    if str(CLONE) not in sys.path:
        sys.path.insert(0, str(CLONE))
    return import_module(f"lab.{module}")


def bench(
    name: Annotated[
        str,
        Argument(help=f"Benchmark: {', '.join(BENCHMARKS)}.", autocompletion=completion.one_of(*BENCHMARKS)),
    ],
    json: Annotated[Path | None, Option(help="Also write the result to this JSON file.")] = None,
    device: Device = None,
    presets: Annotated[
        list[str] | None,
        Option(
            "--preset",
            help="inference, train: preset to measure; repeat for more.",
            autocompletion=completion.presets,
        ),
    ] = None,
    models: Annotated[
        list[Path] | None, Option("--model", metavar="RUN", help="inference: trained model to measure instead.")
    ] = None,
    videos: Annotated[int | None, Option(min=1, help="inference: number of videos of 300 frames.")] = None,
    segmenter: Annotated[Path | None, Option(help="inference: segmenter of --refine; default: random.")] = None,
) -> None:
    """Benchmark the commands, the training step, or a part against its alternatives."""
    if name not in BENCHMARKS:
        raise ColocamError(f"no benchmark '{name}'{suggest(name, BENCHMARKS)}")
    benchmark = _from_laboratory(f"bench.{name}")
    from colocam.utils.device import choose_device
    from colocam.utils.files import refuse_replacing

    if json is not None:
        refuse_replacing(json, b'{\n  "what": ', "result of a benchmark")
    subjects = {"presets": presets, "models": models, "videos": videos, "segmenter": segmenter}
    options = {option: value for option, value in subjects.items() if value is not None}
    for option in options.keys() - signature(benchmark.run).parameters.keys():
        raise ColocamError(f"the benchmark {name} takes no {option}: leave that option out")
    benchmark.run(str(choose_device(device)), json, **options)


def study(
    name: Annotated[str | None, Argument(help="Name of the study; --list shows them.")] = None,
    data: Annotated[
        str, Option(help="demo, a folder with manifest.csv and truth.csv ('colocam index'), or a manifest.")
    ] = "demo",
    boxes: Boxes = None,
    seeds: Annotated[int | None, Option(help="Number of seeds. Default: 3, with --smoke 1.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the studies. Default: studies/DATA.")] = None,
    preset: Preset = "demo",
    config: ConfigFile = None,
    overrides: Overrides = None,
    device: Device = None,
    *,
    val_boxes: Annotated[
        bool, Option("--val-boxes", help="Choose epochs with the boxes of validation videos, as published.")
    ] = False,
    smoke: Annotated[bool, Option("--smoke", help="Tiny sizes, to test that everything runs.")] = False,
    values: Annotated[
        list[float] | None, Option(help="Run only this value of what the study varies, e.g. λ_c; repeatable.")
    ] = None,
    list_all: Annotated[bool, Option("--list", help="List the studies and exit.")] = False,
) -> None:
    """Repeat a table or a figure of the paper, with the published numbers beside the results."""
    studies = _from_laboratory("study")
    if list_all or name is None:
        print(studies.list_studies())
        return
    folder = studies.run_study(
        name,
        data=data,
        boxes=boxes,
        out=out,
        seeds=seeds,
        preset=preset,
        config_file=config,
        overrides=tuple(overrides or ()),
        device=device,
        val_boxes=val_boxes,
        smoke=smoke,
        values=tuple(values or ()),
    )
    say(f"wrote {folder / 'README.md'} and {folder / 'index.html'}")
