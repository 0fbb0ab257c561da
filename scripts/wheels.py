"""Build the wheels, see what is in them, and install them into an empty environment; for ``newcomer.py``.

It prints the size of the installation and the time of the first localization, which docs/guide/install.md states.
Packages are downloaded, or come from pip's cache.
"""

import os
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "tests" / "stored" / "version-0.1.0"
MOST_MEGABYTES = 470
"""Of packages, with ``serve``; NumPy, PyAV, OpenCV, onnxruntime and Pillow alone are 420."""
INSIDE = (
    *("py.typed", "commit.txt", "config/presets/laptop.yaml", "report/page.html", "serve/page/index.html"),
    "integrations/model_card.md",
    *("video/fonts/DejaVuSans-Bold.ttf", "demo/world.py", "native/kernels.abi3.so"),
)
ABSENT = ("torch", "timm", "scipy", "pyarrow", "matplotlib", "onnx")


def build(folder: Path) -> dict[str, Path]:
    """The wheels in ``dist``, by the folders of the clone that they are made from; ours from the source archive."""
    dist = folder / "dist"
    run([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)])
    models = shutil.copytree(ROOT / "models", folder / "models", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(dist), str(models)])
    return {".": next(dist.glob("colocam-*.whl")), "./models": next(dist.glob("colocam_models-*.whl"))}


def check_content(wheel: Path) -> None:
    """Print the size of the wheel; exit with 1 where a file is missing."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in INSIDE if f"colocam/{name}" not in names]
    if missing or any(name.endswith((".c", ".h")) for name in names):
        sys.exit(f"{wheel.name}: without {missing}, or with source code in C")
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MB", flush=True)


def install(wheels: list[Path], environment: Path, extra: str = "") -> Path:
    """Install wheels, the first with an extra, into an environment of nothing else; print the size of its packages."""
    if not environment.exists():
        venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    packages = next((environment / "lib").glob("python*/site-packages"))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    first, *others = map(str, wheels)
    wanted = f"{first}[{extra}]" if extra else first
    run([*pip, "-c", str(ROOT / "constraints.txt"), wanted, *others])
    ours = [path for path in packages.iterdir() if not path.name.startswith(("pip", "setuptools", "colocam_models"))]
    size = sum(map(size_of, ours)) / 2**20
    print(f"{wanted.rpartition('/')[2]}: {size:.0f} MB installed", flush=True)
    if size > MOST_MEGABYTES:
        sys.exit(f"more than {MOST_MEGABYTES} MB")
    found = [name for name in ABSENT if (packages / name).exists()]
    if found:
        sys.exit(f"installed without need: {', '.join(found)}")
    return python


def size_of(path: Path) -> int:
    """Bytes on disk, as ``du`` counts them."""
    return sum(one.lstat().st_blocks * 512 for one in [path, *path.rglob("*")])


def first_frame(command: list[str], folder: Path) -> float:
    """Time at which the progress of ``localize`` shows its first frame; waits until the command ends."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=clean()) as process:
        assert process.stderr is not None
        seen = 0.0
        said = []
        for line in process.stderr:
            said.append(line)
            if not seen and any(f": {count}/" in line for count in range(1, 25)):
                seen = time.perf_counter()
    if process.returncode or not seen:
        sys.exit(f"{' '.join(command)} failed: {''.join(said)}")
    return seen


def run(command: list[str], folder: Path | None = None) -> str:
    """Run a command in a folder and return what it printed; end with its output where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=clean())
    if done.returncode or "Traceback" in done.stderr:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without paths of a source tree."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
