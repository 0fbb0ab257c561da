"""Build the wheel, install it into an empty environment without torch, and walk through the commands that need none.

``make dist-test`` runs it. It prints the size of the installation and the time of the first localization, which
docs/guide/install.md states. Packages are downloaded, or come from pip's cache.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
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


def main() -> None:
    """Check the wheel; exit with 1 where a command fails or the installation is too large."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        names = zipfile.ZipFile(wheel).namelist()
        missing = [name for name in INSIDE if f"colocam/{name}" not in names]
        if missing or any(name.endswith((".c", ".h")) for name in names):
            sys.exit(f"{wheel.name}: without {missing}, or with source code in C")
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MB", flush=True)
        python = install(wheel, Path(folder) / "environment")
        walk(python, Path(folder) / "results")


def build(folder: Path) -> Path:
    """The wheel in ``dist``, built anew from the source archive."""
    run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)])
    return next((folder / "dist").glob("*.whl"))


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel with the extra ``serve``; print the size of all packages but pip."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    packages = next((environment / "lib").glob("python*/site-packages"))
    before = set(packages.iterdir())
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for what in (str(wheel), f"{wheel}[serve]"):
        run([*pip, "-c", str(ROOT / "constraints.txt"), what])
        size = sum(size_of(path) for path in set(packages.iterdir()) - before) / 2**20
        print(f"{what.rpartition('/')[2]}: {size:.0f} MB installed", flush=True)
        if size > MOST_MEGABYTES:
            sys.exit(f"more than {MOST_MEGABYTES} MB")
    found = [name for name in ABSENT if (packages / name).exists()]
    if found:
        sys.exit(f"installed without need: {', '.join(found)}")
    return python


def size_of(path: Path) -> int:
    """Bytes on disk, as ``du`` counts them."""
    return sum(one.lstat().st_blocks * 512 for one in [path, *path.rglob("*")])


def walk(python: Path, out: Path) -> None:
    """Run each light command once, and one that needs an extra."""
    model, video = str(STORED / "model.onnx"), str(STORED / "video.mp4")
    colocam = [str(python.parent / "colocam")]
    print(run([*colocam, "--version"]), end="", flush=True)
    for name in ("first", "second"):
        start = time.perf_counter()
        waited = first_frame([*colocam, "localize", model, video, "-o", str(out / name)])
        print(f"localize, {name} run: {waited - start:.1f} s to the first frame", flush=True)
    table = str(out / "first" / "video.csv")
    for format_ in ("coco", "cvat", "yolo", "voc", "mot", "label-studio", "csv"):
        run([*colocam, "export", table, "--to", format_, "-o", str(out / format_)])
    run([*colocam, "import", str(out / "coco"), "--from", "coco", "--tables", table, "-o", str(out / "fixed.csv")])
    run([*colocam, "review", table, "-o", str(out / "review.csv")])
    run([*colocam, "config", "schema"])
    boxes, truth = out / "boxes.csv", out / "truth.csv"
    boxes.write_text("clip,frame,x1,y1,x2,y2\na,0,1,1,9,9\n")
    truth.write_text("clip,frame,present,x1,y1,x2,y2,tag,video,split,width,height\na,0,1,1,1,9,9,cat,a,test,20,20\n")
    run([*colocam, "score", str(boxes), "--boxes", str(truth)])
    serve(colocam, model, video, out)
    remedies = {("report", str(STORED / "run")): "pip install 'colocam[train]'", ("study",): "clone the repository"}
    for command, remedy in remedies.items():
        refused = subprocess.run([*colocam, *command], capture_output=True, text=True, check=False, env=clean())
        if remedy not in refused.stderr or len(refused.stderr.splitlines()) != 1:
            sys.exit(f"a command that needs more than the wheel said: {refused.stderr}")
    print("all commands ran")


def first_frame(command: list[str]) -> float:
    """Time at which the progress of ``localize`` shows its first frame; waits until the command ends."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean()) as process:
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


def serve(colocam: list[str], model: str, video: str, out: Path) -> None:
    """Start the page, wait until it answers, and stop it."""
    command = [*colocam, "serve", model, video, "-o", str(out / "page"), "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env=clean()) as process:
        assert process.stdout is not None
        lines: Iterator[str] = iter(process.stdout)
        answered = next((line for line in lines if "http://" in line), None)
        process.terminate()
    if answered is None:
        sys.exit("serve did not start")


def run(command: list[str]) -> str:
    """Run a command and return what it printed; end with its output where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean())
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without paths of a source tree."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}


if __name__ == "__main__":
    main()
