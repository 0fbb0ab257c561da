"""Let the commands of inputs fork their processes, which takes a hundredth of the time of starting Python again."""

import faulthandler
import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DECODER = "colocam.video.decoder_child"
WORKER = "colocam.inference.worker_process"
_here = SimpleNamespace(decoder=False, keep=-1)


def is_decoder() -> bool:
    """Whether this process decodes films for a command."""
    return _here.decoder


def fork_children(keep: int) -> None:
    """From now on fork decoders and the workers of ``colocam label``; ``keep`` is a file that they leave open."""

    from colocam.utils import child_processes as child_process  # noqa: PLC0415

    _here.keep = keep
    replaced = {**vars(subprocess), "Popen": _start}
    child_process.subprocess = SimpleNamespace(**replaced)  # type: ignore[attr-defined]


def _start(words: Sequence[str], *, pass_fds: Sequence[int], **options: Any) -> Any:
    if words[5] in {DECODER, WORKER}:
        return _Forked(words[5], list(map(int, words[6:])), pass_fds)
    return subprocess.Popen(words, pass_fds=pass_fds, **options)


class _Forked:
    """A forked decoder or worker, with those methods of ``Popen`` that are used."""

    def __init__(self, module: str, arguments: Sequence[int], files: Sequence[int]) -> None:
        self.code: int | None = None
        self.process = os.fork()
        if self.process:
            return
        status = 1
        try:
            _here.decoder = module == DECODER
            faulthandler.disable()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _close_all_but({0, 1, 2, _here.keep, *files})
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            importlib.import_module(module).main(*arguments)
            status = 0
        except SystemExit:  # a worker that was asked to end
            pass
        except BaseException:  # noqa: BLE001 - as the interpreter does
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)

    def poll(self) -> int | None:
        if self.code is None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if process else None
        return self.code

    def wait(self, timeout: float = 60.0) -> int | None:
        until = time.monotonic() + timeout
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        return self.code

    def kill(self) -> None:
        if self.code is None:
            os.kill(self.process, signal.SIGKILL)

    def terminate(self) -> None:
        if self.code is None:
            os.kill(self.process, signal.SIGTERM)


def _close_all_but(kept: set[int]) -> None:
    """The ends of connections must close when the command closes its own."""
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number not in kept:
            with suppress(OSError):  # that of the folder itself is closed already
                os.close(number)
