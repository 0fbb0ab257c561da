"""Packages that only some commands need, and the extra of colocam that installs each."""

from colocam.errors import ColocamError

EXTRAS: dict[str, str] = {
    **dict.fromkeys(["torch", "torchvision", "timm", "segmentation_models_pytorch", "safetensors"], "train"),
    **dict.fromkeys(["matplotlib", "jinja2", "markupsafe", "numba"], "train"),
    **dict.fromkeys(["onnx", "onnxscript", "onnx_ir"], "onnx"),
    **dict.fromkeys(["fastapi", "starlette", "uvicorn"], "serve"),
    "ray": "ray",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "transformers": "clip",
}
"""Package as it is imported → extra."""


def not_installed(error: ModuleNotFoundError, what: str) -> ColocamError:
    """One line that says which package ``what`` needs, and how to install it."""
    package = (error.name or "").partition(".")[0]
    wanted = f"'colocam[{EXTRAS[package]}]'" if package in EXTRAS else package
    return ColocamError(f"{package}, which {what} needs, is not installed: pip install {wanted}")
