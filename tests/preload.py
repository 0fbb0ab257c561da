"""Import large libraries in the test workers before coverage starts: tracing makes their import half as long again.

``make coverage`` loads this file with pytest's option ``-p``, which comes before coverage.
"""

import importlib
import os

LIBRARIES = (
    "hypothesis.extra.numpy",
    "matplotlib.pyplot",
    "motmetrics",
    "onnxruntime",
    "pyarrow.parquet",
    "scipy.ndimage",
    "segmentation_models_pytorch",
    "skimage",
    "supervision",
    "timm",
    "torch.onnx",
    "torchcam",
    "torchvision",
    "transformers",
)

if "PYTEST_XDIST_WORKER" in os.environ:
    for library in LIBRARIES:
        importlib.import_module(library)
