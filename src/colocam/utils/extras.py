"""The package itself: its version, packages that only some commands need, names imported on first use."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from colocam.errors import NotInstalledError

try:
    __version__ = version("colocam")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+source"


EXTRAS: dict[str, str] = {
    **dict.fromkeys(["torch", "torchvision", "timm", "safetensors"], "train"),
    **dict.fromkeys(["matplotlib", "jinja2", "markupsafe"], "train"),
    **dict.fromkeys(["onnx", "onnxscript", "onnx_ir"], "onnx"),
    **dict.fromkeys(["fastapi", "starlette", "uvicorn"], "serve"),
    "onnx2torch": "prior",
    "ray": "ray",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "transformers": "clip",
}
"""Package as it is imported → extra."""


def version_text() -> str:
    """Version and commit, and the engines that run models; no engine is imported."""
    commit = _commit()
    engines = [f"{name} {found}" for name in ("onnxruntime", "torch") if (found := _version_of(name))]
    return f"colocam {__version__}{f' (commit {commit})' if commit else ''}\nengine: {', '.join(engines)}"


def report_text() -> str:
    """What a bug report needs: versions of system, libraries and extras. It names no file of the user.

    onnxruntime and torch are imported, since only they know their devices.
    """
    rows = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "CPUs": f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()}",
        "loops in C": "yes" if find_spec("colocam.native.kernels") else "no",
    }
    for name in ("numpy", "av", "opencv-python-headless", "colocam-models"):
        rows[name] = _version_of(name) or "not installed"
    rows["onnxruntime"] = _onnxruntime()
    rows["torch"] = _torch()
    packages = {extra: [name for name, needs in EXTRAS.items() if needs == extra] for extra in EXTRAS.values()}
    for extra, names in packages.items():
        missing = [name for name in names if not _is_there(name)]
        rows[f"extra {extra}"] = f"no: {', '.join(missing)} not installed" if missing else "yes"
    return "\n".join(f"{name}: {value}" for name, value in rows.items())


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # hidden: it stands as None among the imported modules
        return False


def _onnxruntime() -> str:
    try:
        import onnxruntime  # noqa: PLC0415 - for this report alone
    except ImportError as error:
        return f"cannot be imported ({type(error).__name__})"
    return f"{onnxruntime.__version__}, {', '.join(onnxruntime.get_available_providers())}"


def _torch() -> str:
    if not _is_there("torch"):
        return "not installed"
    try:
        import torch  # noqa: PLC0415 - for this report alone
    except ImportError as error:
        return f"cannot be imported ({type(error).__name__})"
    if not torch.cuda.is_available():
        return f"{torch.__version__}, no CUDA device"
    names = ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return f"{torch.__version__}, CUDA {torch.version.cuda}, {names}"


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit that was noted when the package was built, or that of the clone it runs from; empty if unknown."""
    package = Path(__file__).parents[1]
    noted, clone = package / "commit.txt", package.parents[1]
    if noted.exists():
        return noted.read_text(encoding="utf-8").strip()
    if not (clone / ".git").exists():
        return ""
    command = ["git", "-C", str(clone), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return ""


def install_extra(extra: str) -> str:
    """How to add an extra: pip finds the extras of an installed colocam without an index, of a clone by its folder."""
    return f"pip install 'colocam[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def not_installed(error: ImportError, what: str, extra: str | None = None) -> NotInstalledError:
    """One line that says which package ``what`` needs, and how to install it.

    Args:
        error: of the import that failed.
        what: command or object that imports the package.
        extra: extra that ``what`` needs; None: the one in :data:`EXTRAS`.
    """
    package = (error.name or "").partition(".")[0]
    extra = extra or EXTRAS.get(package)
    how = f"pip install {package}" if extra is None else install_extra(extra)
    return NotInstalledError(f"{package}, which {what} needs, is not installed: {how}", name=package)


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        homes: module that defines each lazy name.
    """

    def find(name: str) -> Any:  # noqa: ANN401 - the name may stand for anything
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRAS:
                raise
            raise not_installed(error, f"{package}.{name}") from None

    def names() -> list[str]:
        module = vars(sys.modules[package])
        return sorted({*homes, *module.get("__all__", ()), *(name for name in module if name.startswith("__"))})

    return find, names
