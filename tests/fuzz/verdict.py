"""How an input ended: a clean result, a clean error, or a fault with its signature."""

import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.case import Case, load_case, snapshot
from tests.fuzz.child import NOT_BUILT

RESULT, ERROR, STOPPED = "clean result", "clean error", "stopped at limit"
TRACEBACK, HANG, CRASH, MEMORY, UNCLEAN, FILES = "traceback", "hang", "crash", "memory", "unclean error", "files"
BROKEN = "not made"
"""The fuzzer itself could not make the input."""
CLEAN = (RESULT, ERROR, STOPPED)
FAULTS = (TRACEBACK, HANG, CRASH, MEMORY, UNCLEAN, FILES, BROKEN)
MEMORY_BYTES = 2 << 30
KNOWN = {"cwd", "tmp", "case.json", "before.json", "stdout", "stderr", "outside"}
"""What the fuzzer itself puts beside the current folder of a command."""

# What other libraries print: ONNX Runtime, OpenCV, FFmpeg, Python's warnings.
NOISE = re.compile(
    r"\[[EWF]:onnxruntime|^\[ ?(WARN|ERROR)|^\[\w+ @ 0x|Warning: |^Exception ignored"
    r"|^Exception in|^OpenCV|^terminate called"
)
# libpng and libjpeg print complaints themselves. A decoder process can close its stderr; 'score' has no such process.
IMAGES = re.compile(
    r"^(libpng|Corrupt JPEG|Premature end of JPEG|Invalid SOS|Unsupported marker|Invalid JPEG|Warning: unknown JFIF)"
)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in | in )(\S+)')


@dataclass(frozen=True)
class Ended:
    """A process that ended: exit status or minus its signal, peak memory in bytes, why it was killed."""

    status: int
    peak: int
    killed: str = ""


@dataclass(frozen=True)
class Verdict:
    """How an input ended; ``signature`` is equal for inputs that show the same fault."""

    kind: str
    signature: str = ""


def judge(root: Path, ended: Ended) -> Verdict:
    """The verdict on the input whose files are below ``root``, see :func:`tests.fuzz.child.start`."""
    error = _text(root / "stderr")
    if ended.status == NOT_BUILT or not (root / "before.json").exists():
        return Verdict(BROKEN, f"{' '.join(error.split()[-12:])[:100]}")
    case = load_case(root / "case.json")
    command = case.argv[0]
    if (ended_by := _ended_by(ended, error)) is not None:
        return (
            Verdict(STOPPED) if ended_by == HANG and case.endless else Verdict(ended_by, f"{command}: {_place(error)}")
        )
    if "Traceback (most recent call last)" in error:
        names = re.findall(r"^([\w.]*(?:Error|Exception|Exit|Interrupt|Warning))\b", error, re.MULTILINE)
        return Verdict(TRACEBACK, f"{command}: {names[-1] if names else '?'} {_place(error)}")
    if (wrong := _files(root, case)) is not None:
        return Verdict(FILES, f"{command}: {wrong}")
    return _clean_or_not(command, ended.status, error)


def _ended_by(ended: Ended, error: str) -> str | None:
    """The limit or signal that ended a process, None if it ended by itself."""
    if ended.killed == MEMORY or ended.peak > MEMORY_BYTES or re.search(r"MemoryError|bad_alloc", error):
        return MEMORY
    if ended.killed == HANG or ended.status == -signal.SIGXCPU:
        return HANG
    return CRASH if ended.status < 0 else None


def _clean_or_not(command: str, status: int, error: str) -> Verdict:
    lines = [line for line in error.splitlines() if not IMAGES.match(line)]
    noise = next((line for line in lines if NOISE.search(line)), None)
    if noise is not None:
        return Verdict(UNCLEAN, f"{command}: {re.sub(r'[0-9a-fx.:-]+', '#', noise)[:100]}")
    if status == 0:
        return Verdict(RESULT)
    if status == 2 and "Usage:" in error:
        return Verdict(ERROR)
    named = [line for line in lines if line.startswith("error: ")]
    if status == 1 and len(named) == 1 and lines[-1] == named[0] and named[0].isprintable():
        return Verdict(ERROR)
    return Verdict(UNCLEAN, f"{command}: exit {status}, {len(named)} lines 'error:' of {len(lines)}")


def _files(root: Path, case: Case) -> str | None:
    """What is wrong with the files that were written, None if nothing is."""
    if outside := _text(root / "outside"):
        return f"wrote outside: {outside.splitlines()[0][:120]}"
    if left := sorted(path.name for path in (root / "tmp").rglob("*")):
        return f"left {re.sub(r'[0-9a-f_]{6,}', '#', left[0])[:60]} in the temporary folder"
    before = json.loads((root / "before.json").read_text(encoding="utf-8"))
    after = snapshot(root / "cwd") | {f"../{path.name}": "new" for path in root.iterdir() if path.name not in KNOWN}
    names = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    wrong = (_wrong(name, before, after, case) for name in names if not _below(name, case.owned))
    return next((one for one in wrong if one is not None), None)


def _wrong(name: str, before: dict[str, str], after: dict[str, str], case: Case) -> str | None:
    if name in before:
        return f"{'changed' if name in after else 'removed'} {name[:60]}"
    if not _below(name, case.outputs):
        return f"wrote {name[:60]}, which is no output"
    temporary = name.rsplit("/", 1)[-1].startswith(".colocam-") and name.endswith((".lock", ".tmp"))
    return "left a temporary file" if temporary else None


def _below(name: str, folders: list[str]) -> bool:
    return any(folder in {".", ""} or f"{name}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _place(error: str) -> str:
    """The innermost line of colocam in a stack; tracebacks have it last, dumps of signals first."""
    frames = _FRAME.findall(error)
    if "most recent call first" in error:
        frames = frames[::-1]
    ours = [one for one in frames if "/colocam/" in one[0] and "/cli/" not in one[0]] or frames
    return f"{Path(ours[-1][0]).name}:{ours[-1][1]} {ours[-1][2]}" if ours else "?"


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
