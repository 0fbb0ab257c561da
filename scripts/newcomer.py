"""Type the README's commands from an empty folder, with the wheels of this commit, as a newcomer would.

``make dist-test`` runs it. The light installation goes into an empty environment, and walks through all that it
promises; the extra ``serve`` is added for the page. The full one takes its heavy packages from the environment of this
Python. Faults are a command of the README that no rule below types, an exit code other than 0, a traceback, and a file
that is not there afterwards.
"""

import argparse
import http.cookiejar
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
import venv
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from wheels import ROOT, STORED, build, check_content, clean, first_frame, install, run

COUNT = 10
"""Videos of a folder that several workers share."""
SHORT = ["--set", "localizer.epochs=1", "--anyway"]
"""So that a training takes seconds; ``--anyway``, since six videos teach little."""
NEEDS_DOWNLOAD = "--preset resnet50"
"""Left out without a GPU, as the README says; its pretrained weights would be downloaded."""
ELSEWHERE = {"make test": "make test", "make dist": "make dist-test"}
"""Commands of the README that CI types by itself, and the line of .ci/run that does."""
SECONDS_TO_LOCALIZE = 120
FORMATS = ("coco", "cvat", "yolo", "voc", "mot", "label-studio", "fiftyone", "csv", "masks")


def main() -> None:
    """Build, install and type; exit with 1 at the first fault."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        wheels = build(Path(folder))
        check_content(wheels["."])
        home = Path(folder) / "home"
        home.mkdir()
        own_files(home)
        walk = Walk(wheels, Path(folder), home)
        for line in readme():
            walk.type(line)
        walk.light_promises()
        walk.page_alone()
    print("all commands of the README ran")


def readme(text: str | None = None) -> list[str]:
    """The commands of the README in order: lines of its blocks, ``make …`` within sentences, and its Python."""
    text = (ROOT / "README.md").read_text(encoding="utf-8") if text is None else text
    found: list[str] = []
    for block, inline in re.findall(r"^```(.*?)^```|`((?:make|pip|colocam) [^`]*)`", text, re.MULTILINE | re.DOTALL):
        language, _, code = block.partition("\n")
        if language == "python":
            found.append(f"python -c {shlex.quote(code)}")
        else:
            found += [line for line in (inline or code).splitlines() if shlex.split(line, comments=True)]
    return list(dict.fromkeys(found))


def own_files(home: Path) -> None:
    """What the newcomer has: some videos, some sorted by what they show, and a folder of images."""
    for name in ("holiday", "new"):
        shutil.copy(STORED / "video.mp4", home / f"{name}.mp4")
    for tag, source in (("cat", "cat"), ("dog", "owl")):
        for number in range(3):
            (home / "videos" / tag).mkdir(parents=True, exist_ok=True)
            shutil.copy(STORED / "videos" / source / "test-0.mp4", home / "videos" / tag / f"{number}.mp4")
    (home / "ten").mkdir()
    for number in range(COUNT):
        shutil.copy(STORED / "video.mp4", home / "ten" / f"{number}.mp4")


class Walk:
    """The environments that are installed, and the folder in which commands are typed.

    Args:
        wheels: by the folder of the clone that they stand for, ``.`` or ``./models``.
        folder: for environments.
        home: where commands are typed.
    """

    def __init__(self, wheels: dict[str, Path], folder: Path, home: Path) -> None:
        self.wheels, self.folder, self.home = wheels, folder, home
        self.light: Path | None = None
        self.full: Path | None = None
        self.began = time.perf_counter()

    def type(self, line: str) -> None:
        """Type a command of the README in the environments that it is for."""
        words = shlex.split(line.replace(NEEDS_DOWNLOAD, ""), comments=True)
        if words[:2] == ["pip", "install"]:
            self.pip(words[2:])
        elif (typed := ELSEWHERE.get(shlex.join(words[:2]))) is not None:
            if not re.search(rf"^ *{typed}\b", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE):
                fault(f"nothing types '{line}': .ci/run has no line '{typed}'")
        elif words == ["make", "demo"]:
            self.run(self.full, ["colocam", "demo", "--out", "demo", "--short"])
            if not (self.home / "demo/run-0/report/index.html").is_file():
                fault("the demo left no demo/run-0/report/index.html")
        elif words[0] == "python":
            self.run(self.full, words)
        elif words[:2] == ["colocam", "train"]:
            self.run(self.full, [*words, *SHORT])
        elif words[:2] == ["colocam", "serve"]:
            self.serve(self.full, words)
        elif words[:2] == ["colocam", "localize"]:
            needs_torch = any((self.home / word / "model.json").is_file() for word in words)
            for python in [self.full] if needs_torch else [self.light, self.full]:
                shutil.rmtree(self.home / "out", ignore_errors=True)
                self.run(python, words)
        else:
            fault(f"README.md has a command that nobody types here: {line}")

    def pip(self, words: list[str]) -> None:
        """Install the wheels in place of the folders that the README names."""
        parts = [re.fullmatch(r"(\.[\w/]*)(\[[\w,]+\])?", word) for word in words]
        named = {part[1].rstrip("/"): part[2] or "" for part in parts if part}
        if len(named) < len(words) or not named.keys() >= {".", "./models"}:
            fault(f"pip install {' '.join(words)}: not '.' with './models', which bring colocam and the ready model")
        if "train" in named["."]:
            self.full = borrowing(self.folder / "full", [self.wheels[one] for one in named])
        else:
            self.light = install([self.wheels[one] for one in named], self.folder / "light")

    def run(self, python: Path | None, words: list[str]) -> str:
        """Run a command in the newcomer's folder; what it printed."""
        if python is None:
            fault(f"the README does not say how to install what '{shlex.join(words)}' needs")
        print(f"{time.perf_counter() - self.began:4.0f} s  {python.parts[-3]}: {shlex.join(words)[:100]}", flush=True)
        said = run([str(python.parent / words[0]), *words[1:]], self.home)
        for path in made_by(words):
            if not (self.home / path).exists():
                fault(f"'{shlex.join(words)}' left no {path}")
        return said

    def light_promises(self) -> None:
        """Walk through the rest of what the base installation promises."""
        light = self.light
        self.run(light, ["colocam", "--version"])
        model = str(STORED / "model.onnx")
        assert light is not None
        command = [str(light.parent / "colocam"), "localize", model, "holiday.mp4", "-o", "timed"]
        start = time.perf_counter()
        print(f"localize: {first_frame(command, self.home) - start:.1f} s to the first frame", flush=True)
        for python, out in ((self.full, "many-full"), (light, "many")):
            self.run(python, ["colocam", "localize", model, "ten", "-o", out, "--workers", "2", "--masks"])
            for path in (f"{out}/{number}.{ending}" for number in range(COUNT) for ending in ("csv", "mp4")):
                if not (self.home / path).is_file():
                    fault(f"two workers left no {path}")
        self.run(light, ["colocam", "localize", "ten/0.mp4", "ten/1.mp4", "-o", "two", "--no-video", "--workers", "2"])
        for name in FORMATS:
            images = ["--images"] if name == "coco" else []
            self.run(light, ["colocam", "export", "many", "--to", name, "-o", f"to-{name}", *images])
        self.run(light, ["colocam", "localize", model, "to-coco/images", "-o", "pictures"])
        back = ["--tables", "many", "-o", "corrections.csv"]
        self.run(light, ["colocam", "import", "to-cvat/0.xml", "--from", "cvat", *back])
        self.run(light, ["colocam", "review", "many", "-o", "review.csv"])
        self.run(light, ["colocam", "config", "schema"])
        (self.home / "boxes.csv").write_text("clip,frame,x1,y1,x2,y2\na,0,1,1,9,9\n", encoding="utf-8")
        (self.home / "truth.csv").write_text(
            "clip,frame,present,x1,y1,x2,y2,tag,video,split,width,height\na,0,1,1,1,9,9,cat,a,test,20,20\n",
            encoding="utf-8",
        )
        self.run(light, ["colocam", "score", "boxes.csv", "--boxes", "truth.csv"])
        for words, remedy in (
            (["report", str(STORED / "run")], "pip install 'colocam[train]'"),
            (["label", "ten", "-o", "labels"], "pip install 'colocam[parquet]'"),
            (["study"], "clone the repository"),
        ):
            command = [str(light.parent / "colocam"), *words]
            ended = subprocess.run(command, cwd=self.home, capture_output=True, text=True, check=False, env=clean())
            errors = [one for one in ended.stderr.splitlines() if one.startswith("error: ")]
            if ended.returncode != 1 or len(errors) != 1 or remedy not in errors[0] or "Traceback" in ended.stderr:
                fault(f"a command that needs more than the base said: {ended.stderr}")

    def page_alone(self) -> None:
        """Add the extra ``serve`` to the light installation, and open the page."""
        assert self.light is not None
        self.light = install([self.wheels["."], self.wheels["./models"]], self.folder / "light", "serve")
        self.serve(self.light, ["colocam", "serve", "holiday.mp4", "-o", "page-alone"])

    def serve(self, python: Path | None, words: list[str]) -> None:
        """Start the page, wait until its video is localized, and stop it as a supervisor does (SIGTERM)."""
        assert python is not None
        print(f"{time.perf_counter() - self.began:4.0f} s  {python.parts[-3]}: {shlex.join(words)}", flush=True)
        environment = {**clean(), "BROWSER": "true"}
        with subprocess.Popen(
            [str(python.parent / words[0]), *words[1:]],
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None
            said: list[str] = []
            try:
                address = next(
                    found[0] for line in heard(process.stdout, said) if (found := re.search(r"http\S+", line))
                )
                wait_for_video(address)
            except StopIteration:
                said.append("it printed no address")
            finally:
                process.send_signal(signal.SIGTERM)
                said.append(process.communicate(timeout=60)[0])
        text = "".join(said)
        if process.returncode != 130 or "Traceback" in text:
            fault(f"'{shlex.join(words)}' ended with {process.returncode}:\n{text}")


def heard(lines: Iterator[str], said: list[str]) -> Iterator[str]:
    """Lines of a process, which are also kept."""
    for line in lines:
        said.append(line)
        yield line


def wait_for_video(address: str) -> None:
    """Open the page as a browser does, and wait until it has the boxes of a video."""
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    opener = urllib.request.build_opener(jar)
    page = opener.open(address, timeout=30).read().decode()
    script = re.search(r'src="([^"]+\.js)"', page)
    if script is None:
        fault("the page has no script")
    home = address.partition("?")[0].rstrip("/")
    opener.open(home + script[1], timeout=30).read()
    for _ in range(SECONDS_TO_LOCALIZE):
        videos = json.load(opener.open(f"{home}/api/videos", timeout=30))["videos"]
        states = {video["state"] for video in videos}
        if videos and states <= {"ready", "failed"}:
            break
        time.sleep(1)
    if states != {"ready"}:
        fault(f"the page does not show its video: {videos}")


def made_by(words: list[str]) -> list[str]:
    """Files that a command must leave."""
    named = [after for word, after in pairwise(words) if word in {"-o", "--out"}]
    if not named:
        return []
    (out,) = named
    if words[1] == "train":
        return [f"{out}/model.json"]
    videos = [Path(word).stem for word in words if word.endswith(".mp4")]
    if words[1] == "localize":
        endings = ("csv", "video.json") if "--no-video" in words else ("csv", "mp4", "video.json")
        return [f"{out}/{video}.{ending}" for video in videos for ending in endings]
    return [out]


def borrowing(environment: Path, wheels: list[Path]) -> Path:
    """Install wheels into an environment that takes all else from the packages of this Python."""
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--no-deps", "--force-reinstall", *map(str, wheels)])
    home = run([str(python), "-c", "import colocam; print(colocam.__file__)"], environment)
    if not Path(home.strip()).is_relative_to(environment):
        fault(f"the full installation takes colocam from {home.strip()}")
    return python


def fault(text: str) -> NoReturn:
    """End the walk."""
    sys.exit(f"fault: {text}")


if __name__ == "__main__":
    main()
