"""Run many inputs side by side, each in a forked child of a process that has imported everything."""

import gc
import importlib
import multiprocessing
import os
import pkgutil
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fuzz.case import Case
from tests.fuzz.child import start
from tests.fuzz.corpus import STORED, make_corpus
from tests.fuzz.targets import build, target_of
from tests.fuzz.verdict import FAULTS, HANG, MEMORY, MEMORY_BYTES, Ended, judge
from tests.helpers.videos import square_video

SECONDS = 60.0
"""Wall-clock time of one input at most."""
ENDLESS_SECONDS = 10.0
"""The same for trainings whose settings may ask for more."""
PAUSE = 0.01


@dataclass
class Summary:
    """Verdicts by target, and the inputs that show a fault by its kind and signature."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    faults: dict[str, list[int]] = field(default_factory=dict)


def warm_up() -> list[Path]:
    """Import and compile what the children share; returns the folders of compiled functions, which may change."""
    import cv2  # noqa: PLC0415
    import onnx  # noqa: F401, PLC0415
    import onnxruntime  # noqa: F401, PLC0415
    import torch  # noqa: PLC0415

    import colocam  # noqa: PLC0415
    from colocam.inference import Localizer  # noqa: PLC0415
    from colocam.types import VideoFrame  # noqa: PLC0415

    for module in pkgutil.walk_packages(colocam.__path__, "colocam."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    cv2.setNumThreads(1)  # threads do not survive a fork
    torch.set_num_threads(1)
    frames = [VideoFrame(index, index / 25, image) for index, image in enumerate(square_video("cat", 0, 6)[0])]
    for options in ({}, {"smooth": "online"}, {"instances": True}, {"color_mean": "frame", "masks": True}):
        list(Localizer.load(STORED / "run", "cpu", **options).stream(frames))
    _end_threads()
    gc.collect()
    gc.freeze()  # a child that collects garbage would copy the memory of all modules
    return [path for path in Path(colocam.__file__).parent.rglob("__pycache__") if path.is_dir()]


def _end_threads() -> None:
    """End the threads that colocam keeps for later calls: a fork has none of them and would wait."""
    for module in [module for name, module in sys.modules.items() if name.startswith("colocam.")]:
        for value in list(vars(module).values()):
            function = getattr(value, "__wrapped__", None)
            if hasattr(value, "cache_clear") and function.__annotations__.get("return") is ThreadPoolExecutor:
                if value.cache_info().currsize:
                    value().shutdown()
                value.cache_clear()
    left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if left:
        raise RuntimeError(f"threads before a fork: {', '.join(left)}")


def prepare_corpus(folder: Path) -> None:
    """Make the sound files in a child, since encoders start threads."""

    def make() -> None:
        folder.mkdir(parents=True)
        os.chdir(folder)
        make_corpus(folder)

    process = multiprocessing.get_context("fork").Process(target=make)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError("the corpus could not be made")


class Runner:
    """Starts children, watches them, and judges what they did; the first input of each fault is kept in ``faults``."""

    def __init__(self, folder: Path, *, seed: int, jobs: int, faults: Path) -> None:
        self.folder = folder.resolve()
        self.seed = seed
        self.jobs = jobs
        self.faults = faults
        self.corpus = self.folder / "corpus"
        # PyTorch keeps compiled code in the system's folder of temporary files.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.folder / "torch")
        self.permitted = [*warm_up(), self.folder / "torch"]
        shutil.rmtree(self.folder, ignore_errors=True)
        prepare_corpus(self.corpus)

    def run(self, numbers: Iterator[int], until: float) -> Summary:
        """Run inputs until ``numbers`` end or the clock (:func:`time.monotonic`) is at ``until``."""
        summary, running = Summary(), {}
        for number in numbers:
            while len(running) >= self.jobs:
                self._collect(running, summary)
            if time.monotonic() >= until:
                break
            prepare = partial(build, self.seed, number, self.corpus)
            running[number] = Child(self.folder / "inputs" / str(number), prepare, self.permitted)
        while running:
            self._collect(running, summary)
        return summary

    def _collect(self, running: "dict[int, Child]", summary: Summary) -> None:
        """Wait until a child has ended, and judge it."""
        time.sleep(PAUSE)
        for number, child in list(running.items()):
            if (ended := child.poll()) is not None:
                del running[number]
                verdict = judge(child.root, ended)
                summary.counts.setdefault(target_of(self.seed, number), Counter())[verdict.kind] += 1
                if verdict.kind in FAULTS:
                    shown = summary.faults.setdefault(f"{verdict.kind}: {verdict.signature}", [])
                    shown.append(number)
                    if shown == [number]:  # the first that shows it
                        print(f"{number:6} {verdict.kind}: {verdict.signature}", flush=True)
                        self.faults.mkdir(parents=True, exist_ok=True)
                        shutil.rmtree(kept := self.faults / f"{self.seed}-{number}", ignore_errors=True)
                        shutil.move(child.root, kept)
                shutil.rmtree(child.root, ignore_errors=True)


class Child:
    """A running input."""

    def __init__(self, root: Path, prepare: Callable[[Path], Case], permitted: list[Path]) -> None:
        self.root = root
        self.began = time.monotonic()
        self.killed = ""
        self.process = start(root, prepare, permitted)

    def poll(self) -> Ended | None:
        """How it ended, or None while it runs within its limits."""
        process, status, usage = os.wait4(self.process, os.WNOHANG)
        if process:
            self._kill()  # what it started itself
            return Ended(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, self.killed)
        if self.killed:
            return None
        seconds = time.monotonic() - self.began
        if self._memory() > MEMORY_BYTES:
            self._end(MEMORY)
        elif seconds > ENDLESS_SECONDS and (seconds > SECONDS or '"endless": true' in self._case()):
            self._end(HANG)
        return None

    def _end(self, why: str) -> None:
        self.killed = why
        os.kill(self.process, signal.SIGUSR1)  # prints where it is
        time.sleep(0.2)
        self._kill()

    def _kill(self) -> None:
        try:
            os.killpg(self.process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _memory(self) -> int:
        try:
            text = Path(f"/proc/{self.process}/statm").read_text(encoding="ascii")
        except OSError:
            return 0
        return int((text.split() or ["0", "0"])[1]) * 4096

    def _case(self) -> str:
        path = self.root / "case.json"
        return path.read_text(encoding="utf-8") if path.exists() else ""
