"""The demo: make tagged videos, train on the tags, show boxes while it trains, evaluate, report, and start again.

What it trains first starts from nothing; the second training starts from the ready model, as users without a GPU do.
"""

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from colocam.config import load_config
from colocam.demo.from_ready import start_from_ready
from colocam.demo.world import make_world
from colocam.evaluation.glance import Glances
from colocam.evaluation.run_evaluation import evaluate
from colocam.inference.localize import localize_file
from colocam.report import write_report
from colocam.report.evaluation_tables import print_evaluations
from colocam.report.run_review import review_run
from colocam.training import train
from colocam.utils.progress import say

FIRST_LOOK = 3
"""Epochs of the classifier before its maps are worth a look."""
AT_ONCE = "classifier.views=1", "localizer.sequences_per_clip=1", "start.decoder=keep"
"""Of the start from the ready model, in a short demo."""


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    world_seed: int = 1,
    videos_only: bool = False,
    compare: bool = False,
    short: bool = False,
    overrides: Sequence[str] = (),
) -> Path:
    """Make tagged videos in ``out``, train CoLo-CAM on their tags alone, evaluate, and write a report.

    Returns the run folder, ``out/run-<seed>``, or with ``compare`` ``out/compare-<seed>``, where F-CAM is trained
    too. The run that starts from the ready model is ``out/start-<seed>``. An interrupted demo continues where it
    stopped. A ``short`` one has so few videos and epochs that it only shows that everything runs.
    """
    if short:
        say("1 of 5: make 24 short videos of six kinds of object, each with one tag; what follows is short, too")
        world = make_world(out, seed=world_seed, videos_per_class=(2, 1, 1))
    else:
        say("1 of 5: make 180 short videos of six kinds of object, each with one tag (about 40 s on two cores)")
        world = make_world(out, seed=world_seed)
    say(f"videos: {world.videos}; tags: {world.manifest}; true boxes, used only for the evaluation: {world.truth}")
    run = out / f"{'compare' if compare else 'run'}-{seed}"
    if videos_only:
        return run
    methods = ["colocam", "fcam"] if compare else ["colocam"]
    epochs = ["classifier.epochs=1", "localizer.epochs=1"] if short else []
    config = load_config("demo", overrides=[f"seed={seed}", f"methods=[{', '.join(methods)}]", *epochs, *overrides])
    picture = run / "picture.jpg"

    looks = {"classifier": min(FIRST_LOOK, config.classifier.epochs), "colocam": 1}
    say(
        "2 of 5: train on the tags: a classifier (2 to 5 minutes; a first picture after 1 to 2), then the decoder that "
        f"finds boxes ({'two of them, 3 minutes each' if compare else '3 minutes'})"
    )
    begin = time.monotonic()
    train(world.manifest, run, config, frames=out / "frames", after_epoch=Glances(picture, run, world.truth, looks))
    minutes = (time.monotonic() - begin) / 60
    say("3 of 5: compare the boxes of 36 test videos with the true ones (about 40 s)")
    print_evaluations([evaluate(run, world.truth)])
    say("4 of 5: start from the ready model, with half of the videos, and compare (1 to 2 minutes)")
    start_from_ready(out, run, world, minutes, seed=seed, sets=AT_ONCE if short else ())
    say("5 of 5: localize in one video, look for doubtful frames in all, write the report (about 20 s)")
    example = min(world.videos.rglob("test-*.mp4"))
    annotated, table = localize_file(run, example, run / "localized", overwrite=True)
    review_run(run)
    page = write_report(run)
    say(f"picture: {picture}; video with boxes: {annotated}; its table: {table}; report: {page}")
    say(f"open the report:    {shlex.join([sys.executable, '-m', 'webbrowser', page.resolve().as_uri()])}")
    say(f"correct the boxes:  {_colocam()} serve {shlex.join(map(str, (run, example, '-o', out / 'page')))}")
    return run


def _colocam() -> str:
    """How to call this program in the user's shell: ``make demo`` calls one that need not be on the path."""
    called = Path(sys.argv[0])
    if shutil.which("colocam") or called.name != "colocam":
        return "colocam"
    return shlex.quote(str(called))
