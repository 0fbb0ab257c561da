"""The demo: make tagged videos, train, evaluate, localise, review and report."""

from collections.abc import Sequence
from pathlib import Path

from colocam.config import load_config
from colocam.demo.figures import CLASSES
from colocam.demo.world import make_world
from colocam.evaluation.dense import evaluate_dense
from colocam.evaluation.run_evaluation import evaluate
from colocam.inference.localize import localize_file
from colocam.report import write_report
from colocam.report.evaluation_tables import print_dense, print_evaluations
from colocam.report.run_review import review_run
from colocam.training import train
from colocam.utils.progress import say


def run_demo(
    out: Path, *, seed: int = 0, world_seed: int = 1, videos_only: bool = False, overrides: Sequence[str] = ()
) -> Path:
    """Make tagged videos in ``out``, train CoLo-CAM and F-CAM on their tags alone, evaluate, and write a report.

    Returns the run folder ``out/run-<seed>``. An interrupted demo continues where it stopped.
    """
    world = make_world(out, seed=world_seed)
    say(f"videos: {world.videos}; tags: {world.manifest}; true boxes, used only for the evaluation: {world.truth}")
    run = out / f"run-{seed}"
    if videos_only:
        return run
    config = load_config("cpu", overrides=[f"seed={seed}", "methods=[colocam, fcam]", *overrides])
    train(world.manifest, run, config, frames=out / "frames")
    print_evaluations([evaluate(run, world.truth)])
    print_dense([evaluate_dense(run, out, split="test", shots=[f"{tag}/test-00" for tag in CLASSES])])
    example = min(world.videos.rglob("test-*.mp4"))
    annotated, table = localize_file(run, example, run / "localized", overwrite=True)
    review_run(run)
    page = write_report(run)
    say(f"annotated video: {annotated}")
    say(f"boxes: {table}")
    say(f"report: {page}")
    return run
