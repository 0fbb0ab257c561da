"""Packages that only some commands need, and the extra of colocam that installs each."""

from colocam.errors import ColocamError

EXTRAS: dict[str, str] = {
    **dict.fromkeys(["torch", "torchvision", "timm", "segmentation_models_pytorch", "safetensors"], "train"),
    **dict.fromkeys(["matplotlib", "jinja2", "markupsafe"], "train"),
    **dict.fromkeys(["onnx", "onnxscript", "onnx_ir"], "onnx"),
    **dict.fromkeys(["fastapi", "starlette", "uvicorn"], "serve"),
    "ray": "ray",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "transformers": "clip",
}
"""Package as it is imported → extra."""


def install_extra(extra: str) -> str:
    """How to add an extra: pip finds the extras of an installed colocam without an index, of a clone by its folder."""
    return f"pip install 'colocam[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def not_installed(error: ImportError, what: str, extra: str | None = None) -> ColocamError:
    """One line that says which package ``what`` needs, and how to install it.

    Args:
        error: of the import that failed.
        what: command or object that imports the package.
        extra: extra that ``what`` needs; None: the one in :data:`EXTRAS`.
    """
    package = (error.name or "").partition(".")[0]
    extra = extra or EXTRAS.get(package)
    how = f"pip install {package}" if extra is None else install_extra(extra)
    return ColocamError(f"{package}, which {what} needs, is not installed: {how}")
