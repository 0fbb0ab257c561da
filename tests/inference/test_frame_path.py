"""How many source files a frame passes from a video file to its box: a reader has to open so many, and no more."""

import importlib
import sys
import threading
from pathlib import Path

import colocam

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
PACKAGE = str(Path(colocam.__file__).parent)
MOST = 30
FENCE = {"video/fence.py", "video/frame_ring.py", "utils/child_processes.py"}
"""How frames come from the process that decodes them."""


def test_a_frame_passes_few_files(fresh_modules):
    """With colour mean, focus and smoothing, in all threads."""
    entered: set[str] = set()

    def enter(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.add(frame.f_code.co_filename[len(PACKAGE) + 1 :])

    with fresh_modules():  # threads of a pool live on, so those of this test must be new
        threading.setprofile(enter)
        try:
            localizer = importlib.import_module("colocam.inference").Localizer.load(STORED / "run", "cpu")
            assert len(list(localizer(STORED / "film.mp4"))) == 24  # the first turn also starts up
            entered.clear()
            sys.setprofile(enter)
            assert len(list(localizer(STORED / "film.mp4"))) == 24
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert {"video/reader.py", "inference/stages.py", "models/decoder.py", "temporal/path.py"} <= entered
    assert len(entered - FENCE) <= MOST, sorted(entered)
