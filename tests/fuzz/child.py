"""Run one input in a forked child: its own folder, limits, and no file written elsewhere."""

import atexit
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, snapshot

CPU_SECONDS = 120
FILE_BYTES = 1 << 30
ADDRESS_BYTES = 4 << 30
"""What an input may map beyond what the imported libraries have mapped already."""
NOT_BUILT = 97
"""Exit status of an input that could not be put together: a fault of the fuzzer itself."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events that change the file system, with the places of the paths in their arguments.
EVENTS = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime"), (0,)),
    **dict.fromkeys(("os.rename",), (0, 1)),
    **dict.fromkeys(("os.link", "os.symlink"), (1,)),
}


def start(root: Path, prepare: Callable[[Path], Case], permitted: list[Path]) -> int:
    """Fork a child that prepares an input below ``root`` and runs it; returns its process id.

    ``root`` then holds ``cwd``, the current folder of the command, ``case.json``, ``before.json``, ``stdout``,
    ``stderr``, and ``outside`` with what the command tried to write elsewhere.
    """
    for name in ("cwd", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        _run(root.resolve(), prepare, permitted)
    finally:
        os._exit(NOT_BUILT)


def _run(root: Path, prepare: Callable[[Path], Case], permitted: list[Path]) -> None:
    for stream, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, stream)
        os.close(file)
    try:
        case = prepare(root / "cwd")
        case.save(root / "case.json")
        (root / "before.json").write_text(json.dumps(snapshot(root / "cwd")), encoding="utf-8")
        source = os.open(root / "cwd" / case.stdin if case.stdin else os.devnull, os.O_RDONLY)
        outside = os.open(root / "outside", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except Exception:  # noqa: BLE001 - whatever the fuzzer itself does wrong
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(NOT_BUILT)
    os.dup2(source, 0)
    os.chdir(root / "cwd")
    os.environ["TMPDIR"] = tempfile.tempdir = str(root / "tmp")
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _limit()
    _guard(root, outside, permitted)
    os._exit(_call(case))


def _call(case: Case) -> int:
    """Exit status of the command, after everything that Python does when a program ends."""
    from colocam.cli import main  # noqa: PLC0415 - the parent has imported it

    sys.argv = ["colocam", *case.argv]
    status = 0
    try:
        main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        status = 1
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _limit() -> None:
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, mapped + ADDRESS_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _guard(root: Path, outside: int, permitted: list[Path]) -> None:
    """Refuse and record changes of the file system outside ``root``, as far as Python sees them."""
    allowed = tuple(f"{path}{os.sep}" for path in (root, *permitted))

    def is_outside(path: Any) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):  # an open file
            return False
        full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - a link is judged by its own place
        return full != os.devnull and not f"{full}{os.sep}".startswith(allowed)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            paths = [path] if isinstance(flags, int) and flags & WRITES else []
        else:
            paths = [arguments[place] for place in EVENTS.get(event, ())]
        for path in paths:
            if is_outside(path):
                os.write(outside, f"{event} {path!r}\n".encode("utf-8", "backslashreplace"))
                raise PermissionError(1, "outside the folder of the input", path)

    sys.addaudithook(hook)
