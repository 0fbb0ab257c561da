"""The command line with a network whose passes never end; each says "a pass began" on the standard output."""

import sys

SCRIPT = """
import sys, time
from colocam.cli import main
from colocam.inference import localize
from colocam.inference.network import OnnxNetwork

def sleep(self, *_):
    print("a pass began\\n", end="", flush=True)  # in one piece, whoever else prints
    time.sleep(1000)

OnnxNetwork._run = sleep
localize.VIDEOS_OF_A_WORKER = 1
sys.argv = ["colocam", *sys.argv[1:]]
main()
"""


def endless(*words):
    """A command of colocam for subprocess.Popen."""
    return [sys.executable, "-X", "faulthandler", "-c", SCRIPT, *map(str, words)]
