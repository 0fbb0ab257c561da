"""Decoder processes that fail at a video, as a fault of FFmpeg would make them."""

import sys
from pathlib import Path

HOSTILE = {
    "hangs": "time.sleep(1000)",
    "hangs in compiled code": "ctypes.PyDLL(None).sleep(1000)",
    "crashes": "ctypes.string_at(0)",
    "aborts": "os.abort()",
    "leaves": "os._exit(7)",
    "allocates": "kept = [bytearray(2**24) for _ in range(10**6)]",
    "fails": "1 / 0",
}


def make_hostile(folder: Path, work: str) -> None:
    """Write a module that does ``work`` at frame 3 of a file named ``hostile…``, if ``folder`` is on PYTHONPATH."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import ctypes, os, sys, time\n"
        f"sys.path[:0] = {[path for path in sys.path if path]!r}\n"
        "from colocam.video import reader\n"
        "whole = reader.VideoReader.frames\n"
        "def frames(self, choice):\n"
        "    for frame in whole(self, choice):\n"
        "        if frame.index == 3 and 'hostile' in self.source.name:\n"
        f"            {work}\n"
        "        yield frame\n"
        "reader.VideoReader.frames = frames\n",
        encoding="utf-8",
    )
