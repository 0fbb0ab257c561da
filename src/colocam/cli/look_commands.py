"""Look at what was learnt: evaluation, report, and the frames to check."""

from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.shared_options import Device, color_mean_of, split_of
from colocam.errors import ColocamError
from colocam.utils.progress import say


def evaluate(
    boxes: Annotated[Path, typer.Option(help="Table of true boxes: clip, frame, present, x1, y1, x2, y2.")],
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders; several of the same data give mean ± std.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which videos to evaluate on: train, val or test.")] = "test",
    cams: Annotated[str | None, typer.Option(help="CAM methods, e.g. cam,layercam, or all; else the run's.")] = None,
    color_mean: Annotated[
        str | None, typer.Option(help="Complete maps of all methods by colour: off, frame or clip; else as trained.")
    ] = None,
    focus: Annotated[
        bool | None, typer.Option("--focus/--no-focus", help="Draw decoders' maps towards the tag; else as trained.")
    ] = None,
    device: Device = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Instead of runs: a table of predicted boxes, or a folder of maps.")
    ] = None,
    manifest: Annotated[Path | None, typer.Option(help="Predictions: where the clips' tags are known from.")] = None,
    size: Annotated[int | None, typer.Option(help="Predicted boxes: side of the square to compare in.", min=1)] = None,
    masks: Annotated[Path | None, typer.Option(help="Predicted maps: folder of true masks, for PxAP.")] = None,
    json: Annotated[Path | None, typer.Option(help="Predictions: also write the numbers to this file.")] = None,
) -> None:
    """Print CorLoc of runs under the four protocols and write RUN/evaluation.json; or evaluate others' predictions."""
    from colocam.report.console import print_evaluations, print_predictions

    chosen = split_of(split)
    if (predictions is None) == (not runs):
        raise ColocamError("give either run folders or --predictions")
    if predictions is not None:
        from colocam.evaluation.prediction_evaluation import evaluate_predictions
        from colocam.utils.files import write_json

        result = evaluate_predictions(predictions, boxes, manifest=manifest, split=chosen, size=size, masks=masks)
        print_predictions(result)
        if json is not None:
            write_json(json, result)
        return
    whose = None if color_mean is None else color_mean_of(color_mean)
    if unused := [
        name for name, value in (("manifest", manifest), ("size", size), ("masks", masks), ("json", json)) if value
    ]:
        raise ColocamError(f"--{unused[0]} is for --predictions: runs know theirs")
    from colocam.cams import classifier_cams
    from colocam.evaluation.run_evaluation import evaluate as run_evaluation

    named = None if cams is None else classifier_cams() if cams == "all" else [name.strip() for name in cams.split(",")]
    print_evaluations(
        [
            run_evaluation(run, boxes, split=chosen, cams=named, color_mean=whose, focus=focus, device=device)
            for run in runs or []
        ]
    )


def review(
    sources: Annotated[list[Path], typer.Argument(help="Tables of 'colocam localize', or one run folder.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file; of a run RUN/review.csv.")] = None,
    share: Annotated[float, typer.Option(help="Part of the frames to list.")] = 0.05,
    apart: Annotated[
        float, typer.Option(help="Seconds by which listed frames should be apart; 0 for no matter.")
    ] = 0.5,
    split: Annotated[str, typer.Option(help="Of a run: whose videos, train, val or test.")] = "test",
    device: Device = None,
) -> None:
    """List the frames whose boxes are most doubtful, with the reason; of a run also as pictures for its report."""
    from colocam.review import review_tables

    if not any(source.is_dir() for source in sources):
        say(f"wrote {review_tables(sources, out or Path('review.csv'), share=share, apart=apart)}")
        return
    from colocam.review.run_review import review_run

    chosen = split_of(split)
    if len(sources) > 1:
        raise ColocamError("give tables, or one run folder alone")
    queue = review_run(sources[0], out, split=chosen, share=share, apart=apart, device=device)
    say(f"wrote {queue}; now: colocam report {sources[0]}")


def report(run: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Write RUN/report/index.html from what the run folder holds."""
    from colocam.report import write_report

    say(f"wrote {write_report(run)}")
