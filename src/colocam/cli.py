"""The command line: each command is a thin reading of its arguments; what it does lives in the module it names."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from colocam.errors import ColocamError, InterruptedRunError
from colocam.progress import say

app = typer.Typer(
    help="Boxes, heat-maps and tracks in videos, learnt from one tag per video.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

index_app = typer.Typer(no_args_is_help=True, help="Make a manifest and a table of true boxes of a known data set.")
app.add_typer(index_app, name="index")

Device = Annotated[str | None, typer.Option(help="cpu or cuda; without it the GPU, if there is one.")]
Boxes = Annotated[Path | None, typer.Option(help="Table of true boxes: clip, frame, present, x1, y1, x2, y2.")]
Preset = Annotated[str, typer.Option(help="Configuration to start from: cpu, paper.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file that changes keys of the preset.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Change one key, e.g. --set localizer.epochs=20.")]
Frames = Annotated[Path | None, typer.Option(help="Folder for decoded frames, to be shared by runs.")]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the videos and the run.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the training; the videos stay the same.")] = 0,
    world_seed: Annotated[int, typer.Option(help="Seed of the videos; no setting was chosen on world 1.")] = 1,
    *,
    videos_only: Annotated[bool, typer.Option("--videos-only", help="Make the tagged videos and stop.")] = False,
    overrides: Overrides = None,
) -> None:
    """Make a small world of tagged videos, train on its tags, evaluate, and write a report."""
    from colocam.demo import run_demo  # noqa: PLC0415 - torch is imported only where it is needed

    run_demo(out, seed=seed, world_seed=world_seed, videos_only=videos_only, overrides=overrides or [])


@index_app.command("youtube-objects")
def index_youtube_objects(
    root: Annotated[Path, typer.Argument(help="Folder of the archive, with one folder per class in it.")],
    version: Annotated[str, typer.Option(help="Version of the archive: 1.0 or 2.2.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for manifest.csv and truth.csv.")] = None,
    lists: Annotated[
        Path | None, typer.Option("--lists", "--val-lists", help="Folder of split lists, for the validation videos.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the validation videos where no list names them.")] = 0,
) -> None:
    """Index YouTube-Objects and print what was found beside the published counts."""
    from colocam.indexing import index_youtube_objects as run_index  # noqa: PLC0415

    manifest, truth = run_index(root, version, out, lists=lists, seed=seed)
    say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")


@index_app.command("frames")
def index_frames(
    table: Annotated[Path, typer.Argument(help="Table: video, shot, frame, class, split, width, height, x1 … y2.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for manifest.csv and truth.csv.")],
) -> None:
    """Index single frames of shots, given as a table with one row per box, and print what was found."""
    from colocam.indexing import index_frames as run_index  # noqa: PLC0415

    manifest, truth = run_index(table, out)
    say(f"wrote {manifest} and {truth}; now: colocam train {manifest} --out RUN")


@app.command()
def train(
    videos: Annotated[Path, typer.Argument(help="Folder VIDEOS/<tag>/…, or a CSV or parquet manifest.")],
    out: Annotated[Path, typer.Option(help="Run folder; the same command continues an interrupted run.")],
    preset: Preset = "cpu",
    config: ConfigFile = None,
    overrides: Overrides = None,
    boxes: Boxes = None,
    frames: Frames = None,
    device: Device = None,
) -> None:
    """Train both stages on tagged videos."""
    from colocam.config import load_config  # noqa: PLC0415
    from colocam.training import train as run_training  # noqa: PLC0415

    chosen = load_config(preset, config, overrides or [])
    run = run_training(videos, out, chosen, boxes=boxes, frames=frames, device=device)
    say(f"trained: {run / 'model.json'}; now: colocam localize {run} VIDEO -o OUT")


@app.command()
def evaluate(
    boxes: Annotated[Path, typer.Option(help="Table of true boxes: clip, frame, present, x1, y1, x2, y2.")],
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders; several of the same data give mean ± std.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which videos to evaluate on: train, val or test.")] = "test",
    cams: Annotated[str | None, typer.Option(help="CAM methods, e.g. cam,layercam, or all; else the run's.")] = None,
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
    from colocam.report.console import print_evaluations, print_predictions  # noqa: PLC0415
    from colocam.types import SPLITS  # noqa: PLC0415

    chosen = next((name for name in SPLITS if name == split), None)
    if chosen is None:
        raise ColocamError(f"--split {split}: give one of {', '.join(SPLITS)}")
    if (predictions is None) == (not runs):
        raise ColocamError("give either run folders or --predictions")
    if predictions is not None:
        from colocam.files import write_json  # noqa: PLC0415
        from colocam.predictions import evaluate_predictions  # noqa: PLC0415

        result = evaluate_predictions(predictions, boxes, manifest=manifest, split=chosen, size=size, masks=masks)
        print_predictions(result)
        if json is not None:
            write_json(json, result)
        return
    if unused := [
        name for name, value in (("manifest", manifest), ("size", size), ("masks", masks), ("json", json)) if value
    ]:
        raise ColocamError(f"--{unused[0]} is for --predictions: runs know theirs")
    from colocam.cams import METHODS  # noqa: PLC0415
    from colocam.evaluation import evaluate as run_evaluation  # noqa: PLC0415

    named = None if cams is None else list(METHODS) if cams == "all" else [name.strip() for name in cams.split(",")]
    print_evaluations([run_evaluation(run, boxes, split=chosen, cams=named, device=device) for run in runs or []])


@app.command()
def localize(
    run: Annotated[Path, typer.Argument(help="Run folder with a trained model, or an ONNX file made of it.")],
    videos: Annotated[
        list[str],
        typer.Argument(help="Videos and folders of them; - for the standard input; rtsp://…; a camera, /dev/video0."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the annotated videos and the tables.")],
    table: Annotated[str, typer.Option(help="Format of the table: csv or parquet.")] = "csv",
    *,
    masks: Annotated[
        bool, typer.Option("--masks", help="Also write the object's outline, as a column 'mask'.")
    ] = False,
    smooth: Annotated[
        str, typer.Option(help="Steady boxes: offline (looks ahead), online (does not) or none.")
    ] = "offline",
    tag: Annotated[str | None, typer.Option(help="What the videos show, where you know it.")] = None,
    presence: Annotated[
        float | None, typer.Option(help="No box where the object is there with a lower probability, e.g. 0.5.")
    ] = None,
    instances: Annotated[
        bool, typer.Option("--instances", help="A box, a track and a row for every object, not for one per frame.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(help="Share of the map's maximum from which it is foreground; else the model's own.")
    ] = None,
    every: Annotated[int, typer.Option(help="Look at one frame of so many.")] = 1,
    fps: Annotated[float | None, typer.Option(help="Look at so many frames a second, those nearest in time.")] = None,
    start: Annotated[float | None, typer.Option("--from", help="Begin at this second, as 'pts' counts.")] = None,
    end: Annotated[float | None, typer.Option("--to", help="Stop before this second, as 'pts' counts.")] = None,
    frames: Annotated[str, typer.Option(help="Look at the frames A:B, from A (0 is the first) up to B.")] = ":",
    no_video: Annotated[bool, typer.Option("--no-video", help="Write the tables alone.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also do again what is done already.")] = False,
    input_format: Annotated[
        str | None, typer.Option("--format", help="How FFmpeg is to read the input, e.g. v4l2 for a camera.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Frames at once; without it what suits the device.")] = None,
    device: Device = None,
) -> None:
    """Write an annotated mp4 and a table with one row per frame of each video."""
    from colocam.data.choice import FrameChoice, parse_frames  # noqa: PLC0415
    from colocam.inference.localize import Writing, localize_videos  # noqa: PLC0415

    choice = FrameChoice(every=every, fps=fps, start=start, end=end, frames=parse_frames(frames))
    for written in localize_videos(
        run,
        videos,
        out,
        Writing(table, not no_video, choice),
        overwrite=overwrite,
        format=input_format,
        device=device,
        batch=batch,
        masks=masks,
        smooth=smooth,
        tag=tag,
        presence=presence,
        instances=instances,
        threshold=threshold,
    ):
        say(f"wrote {' and '.join(str(path) for path in written if path is not None)}")


@app.command()
def export(
    tables: Annotated[
        list[Path],
        typer.Argument(help="Tables of 'colocam localize', one per video, edited or not; a run folder with --model."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the labels; file for a model.")],
    to: Annotated[
        str | None, typer.Option(help="coco, yolo, voc, mot, cvat, label-studio, csv, parquet or masks.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Instead of tables, the trained model of a run: onnx.")] = None,
    video: Annotated[
        list[Path] | None, typer.Option(help="Video of each table, in order; without it TABLE.video.json is read.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Pixels a box may be off between key frames.")] = 1.0,
    url: Annotated[
        str, typer.Option(help="What stands before a video's name in Label Studio.")
    ] = "/data/local-files/?d=",
    *,
    images: Annotated[bool, typer.Option("--images", help="Also write the frames as JPEG.")] = False,
) -> None:
    """Write the boxes of tables as labels for a detector or an annotation tool; or a trained model as one file."""
    from colocam.export import Options  # noqa: PLC0415
    from colocam.export import export as run_export  # noqa: PLC0415

    options = Options(images=images, tolerance=tolerance, url=url)
    if (to is None) == (model is None):
        raise ColocamError("give either --to FORMAT with tables of boxes, or --model onnx with a run folder")
    if to is not None:
        say(f"wrote {run_export(tables, to, out, videos=video or [], options=options)}")
        return
    if model != "onnx":
        raise ColocamError(f"--model {model}: give onnx")
    if video or options != Options():
        raise ColocamError("--video, --tolerance, --url and --images are for tables of boxes: leave them out")
    if len(tables) != 1:
        raise ColocamError(f"--model onnx: give one run folder, not {len(tables)}")
    from colocam.export.onnx_model import export_onnx  # noqa: PLC0415

    say(f"wrote {export_onnx(tables[0], out)}; now: colocam localize {out} VIDEO -o OUT")


@app.command()
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
    from colocam.review import review_tables  # noqa: PLC0415

    if not any(source.is_dir() for source in sources):
        say(f"wrote {review_tables(sources, out or Path('review.csv'), share=share, apart=apart)}")
        return
    from colocam.review.run import review_run  # noqa: PLC0415
    from colocam.types import SPLITS  # noqa: PLC0415

    chosen = next((name for name in SPLITS if name == split), None)
    if chosen is None:
        raise ColocamError(f"--split {split}: give one of {', '.join(SPLITS)}")
    if len(sources) > 1:
        raise ColocamError("give tables, or one run folder alone")
    queue = review_run(sources[0], out, split=chosen, share=share, apart=apart, device=device)
    say(f"wrote {queue}; now: colocam report {sources[0]}")


@app.command()
def report(run: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Write RUN/report/index.html from what the run folder holds."""
    from colocam.report import write_report  # noqa: PLC0415

    say(f"wrote {write_report(run)}")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="What to time: affinity, cam, inference, train.")],
    json: Annotated[Path | None, typer.Option(help="Also write the numbers to this file.")] = None,
    device: Device = None,
) -> None:
    """Time a part, side by side with its alternatives."""
    benches = ("affinity", "cam", "inference", "train")
    if name not in benches:
        raise ColocamError(f"no bench '{name}': there is {', '.join(benches)}")
    import_module(f"colocam.bench.{name}").run(device or "cpu", json)


@app.command()
def study(
    name: Annotated[str | None, typer.Argument(help="Which study; --list names them.")] = None,
    data: Annotated[
        str, typer.Option(help="demo, a folder with manifest.csv and truth.csv ('colocam index'), or a manifest.")
    ] = "demo",
    boxes: Boxes = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; 3, or 1 with --smoke.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder that all studies on these data share.")
    ] = None,
    preset: Preset = "cpu",
    config: ConfigFile = None,
    overrides: Overrides = None,
    device: Device = None,
    *,
    val_boxes: Annotated[
        bool, typer.Option("--val-boxes", help="Boxes of validation videos choose the epochs, as published.")
    ] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes, to see that everything runs.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the studies and stop.")] = False,
) -> None:
    """Repeat a table or a figure of the paper, with the published numbers beside ours."""
    from colocam.study import list_studies, run_study  # noqa: PLC0415

    if list_all or name is None:
        print(list_studies())
        return
    folder = run_study(
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
    )
    say(f"wrote {folder / 'README.md'} and {folder / 'index.html'}")


def main() -> None:
    """Run the command line; what a user can mend becomes one line and a non-zero exit."""
    try:
        app()
    except InterruptedRunError as stop:
        say(str(stop))
        sys.exit(130)
    except ColocamError as error:
        say(f"error: {error}")
        sys.exit(1)
    except OSError as error:
        say(f"error: {error}")
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:  # what typer makes of Ctrl-C
            say("stopped")
        raise
