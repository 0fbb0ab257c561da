"""How many source files a frame passes from a video file to its box: a reader has to open so many, and no more."""

import subprocess
import sys
from pathlib import Path

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
MOST = 30

CODE = """
import sys, threading
from pathlib import Path
import colocam
from colocam.inference import Localizer
from colocam.models import model_file  # the profile would slow down the imports of torch and timm

package, entered = str(Path(colocam.__file__).parent), set()


def enter(frame, event, _argument):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        entered.add(frame.f_code.co_filename[len(package) + 1 :])


threading.setprofile(enter)  # before the first thread: those of a pool live on
sys.setprofile(enter)
localizer = Localizer.load(sys.argv[1], "cpu")
for turn in range(2):
    entered.clear()  # the first turn also starts up
    assert len(list(localizer(sys.argv[2]))) == 24
sys.setprofile(None)
print(*sorted(entered), sep="\\n")
"""


def test_a_frame_passes_few_files():
    """With colour mean, focus and smoothing, in all threads."""
    command = [sys.executable, "-c", CODE, str(STORED / "run"), str(STORED / "film.mp4")]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"video/reader.py", "inference/stages.py", "models/decoder.py", "temporal/path.py"} <= set(files)
    assert len(files) <= MOST, files
