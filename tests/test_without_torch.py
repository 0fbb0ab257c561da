"""What needs no torch imports none: torch takes seconds to import, and an ONNX model is used without it."""

import json
import subprocess
import sys

import numpy as np

CODE = """
import json, sys
sys.modules["torch"] = None  # importing it fails
import colocam.cli
import colocam.export
import colocam.temporal.presence
import numpy as np
from colocam.maps.color_mean import arrays_with_color_mean
from colocam.maps.postprocess import arrays_postprocess
from colocam.segment.open_segmenter import load_segmenter
from colocam.segment.refine import refine

dir(colocam), colocam.__version__, colocam.Box
frames, maps, ids = np.zeros((1, 8, 8, 3), np.uint8), np.ones((1, 8, 8), np.float32), np.zeros(1, np.int64)
level = np.zeros((1, 32, 32), np.uint8)
level[0, 8:20, 8:20] = 200
print(json.dumps({
    "color_mean": arrays_with_color_mean(frames, maps, ids).tolist(),
    "focus": arrays_postprocess(frames, maps, ids, np.ones((1, 4, 4), np.float32)).shape,
    "refined": len(refine(load_segmenter(sys.argv[1]), [np.zeros((40, 60, 3), np.uint8)], level)),
}))
"""


def test_public_names_command_line_export_arrays_and_segmenters(box_segmenter_files):
    child = subprocess.run(
        [sys.executable, "-c", CODE, box_segmenter_files], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    np.testing.assert_allclose(found["color_mean"], np.ones((1, 8, 8)), atol=1e-3)  # the mean of equal maps
    assert found["focus"] == [1, 8, 8]
    assert found["refined"] == 1
