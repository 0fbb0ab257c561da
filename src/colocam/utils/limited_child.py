"""Run a function that reads a stranger's bytes in a process of its own, with limits of memory and time.

Whatever the bytes do to it, this process goes on: a crash, a hang or a file that explodes costs one line.
"""

import gc
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.utils.child_processes import ChildProcess, Message, Parent
from colocam.utils.extensions import load_extensions


def run_limited(
    module: str,
    function: str,
    arguments: Message,
    *,
    name: str,
    folder: Path,
    memory: int,
    seconds: float | None = None,
) -> Message:
    """Call a function in a limited child and give what it returns.

    Args:
        module: whose ``main(control, life)`` calls :func:`serve_function`.
        function: name of one of its functions; it takes ``folder`` and the arguments, and returns a dictionary.
        arguments: by name; like the answer, they are what JSON can hold.
        name: of the file that is read, which begins every error.
        folder: for temporary files, and for results that are too large for an answer; the caller removes it.
        memory: bytes that the function may take (Linux).
        seconds: that it may take; None: no limit.

    Raises:
        ColocamError: the function raised one, or exceeded a limit, or its process crashed.
        ModuleNotFoundError: an extra is not installed.
    """
    request = {"function": function, "arguments": arguments, "name": name, "folder": str(folder), "memory": memory}
    child = ChildProcess(module)
    try:
        with suppress(OSError):  # it ended at once: see below
            child.channel.send(request)
        if not child.channel.ready(seconds):
            raise ColocamError(f"{name}: not read within {seconds:g} s: split the file")
        answer = child.channel.receive()
        if answer is None:
            end = child.how_it_ended()
            raise ColocamError(f"{name}: reading it ended with {end}: the file may be damaged, or too large")
    finally:
        child.kill()
    match answer:
        case {"argument": argument, "problem": problem}:
            raise ArgumentError(argument, problem)
        case {"missing": module, "problem": problem}:
            raise ModuleNotFoundError(problem, name=module)
        case {"problem": problem}:
            raise ColocamError(problem)
    result: Message = answer["result"]
    return result


def serve_function(control: int, life: int, *functions: Callable[..., Message]) -> None:
    """Call the one of ``functions`` that the parent asks for, once; for the ``main`` of a module."""
    parent = Parent(control, life)
    request = parent.receive()
    if request is None:
        return
    name, memory = request["name"], request["memory"]
    folder = Path(request["folder"])
    gc.disable()  # millions of labels, none of them in a circle; the process ends after this one file
    tempfile.tempdir = str(folder)  # the parent removes what is left in it
    with suppress(OSError):
        be_modest()
    try:
        load_extensions()
        call = {function.__name__: function for function in functions}[request["function"]]
        limit_memory(memory)
        answer: Message = {"result": call(folder=folder, **request["arguments"])}
    except ArgumentError as error:
        answer = {"argument": error.argument, "problem": error.problem}
    except ColocamError as error:
        answer = {"problem": str(error)}
    except ModuleNotFoundError as error:
        answer = {"missing": error.name, "problem": str(error)}
    except (MemoryError, SystemError):  # some libraries of C return without an error when memory is short
        answer = {"problem": f"{name}: takes more than {memory >> 20} MiB of memory: split the file"}
    except Exception as error:  # noqa: BLE001 - libraries raise errors of a dozen kinds for damaged bytes
        problem = f"{type(error).__name__}: {first_line(error)}"
        answer = {"problem": f"{name}: cannot be read ({problem}): the file may be damaged"}
    parent.send(answer)


def limit_memory(more: int) -> None:
    """Let this process take ``more`` bytes than it has now; allocations beyond fail. On Linux only.

    Counted are the private pages that it may write to (``RLIMIT_DATA``): not the slots of frames, and not the address
    space that allocators only reserve.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - only Unix has it

    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - for each video
        data = int(file.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = data + more
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))


def be_modest() -> None:
    """Write no core dump of a crash, and be the first that the kernel ends when memory is short."""
    try:
        import resource  # noqa: PLC0415 - only Unix has it
    except ModuleNotFoundError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
