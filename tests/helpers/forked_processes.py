"""A process that has imported everything and forks groups of processes, as torchrun starts them.

Each line that it reads is a JSON object: ``world`` (number of processes), ``call`` ("module:function") and its
``arguments``, ``stderr`` (a file), and ``signals``: ``{"1": [15, 3]}`` sends rank 1 the signal 15 at the start of its
third training step. The answer is the list of exit codes.
"""

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from itertools import count

import colocam.cli
import colocam.evaluation.run_evaluation
from colocam.training import loop


def command_line(*arguments):
    sys.argv = ["colocam", *arguments]
    colocam.cli.main()


def torchrun(*arguments):
    """Start a command as torchrun's own command line does; its output goes to stderr."""
    from torch.distributed.run import main  # noqa: PLC0415 - slow to import

    os.dup2(2, 1)
    main([*arguments])


def watched_command_line(folder, moment, number, *arguments):
    """Send this process a signal at an event of the file system in ``folder``; at the end print how many there were.

    So moments can be told apart without waiting for them.
    """
    seen = 0

    def hook(event, paths):
        nonlocal seen
        if event in {"open", "os.rename", "os.remove", "os.truncate"} and str(paths[0]).startswith(folder):
            seen += 1
            if seen == int(moment):
                os.kill(os.getpid(), int(number))

    sys.addaudithook(hook)
    try:
        command_line(*arguments)
    finally:
        print(seen, file=sys.stderr, flush=True)


def signal_at(number, step):
    plain, steps = loop.sgd_step, count(1)

    def signaling(*arguments):
        if next(steps) == step:
            os.kill(os.getpid(), number)
        return plain(*arguments)

    loop.sgd_step = signaling


def run(job, rank, port):
    os.dup2(os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    if job["world"] > 1:
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": job["world"], "MASTER_PORT": port}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in place.items()}}
    if str(rank) in job["signals"]:
        signal_at(*job["signals"][str(rank)])
    module, _, function = job["call"].partition(":")
    getattr(importlib.import_module(module), function)(*job["arguments"])


def start(job, rank, port):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(job, rank, port)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:  # noqa: BLE001 - a fork must not return
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    for line in sys.stdin:
        job, port = json.loads(line), free_port()
        children = [start(job, rank, port) for rank in range(job["world"])]
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)
