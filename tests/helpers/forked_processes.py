"""A process that has imported everything and forks groups of processes, as torchrun starts them, for each line it reads.

A line is a JSON object: ``world`` (number of processes), ``call`` ("module:function") and its ``arguments``, ``stderr``
(a file), and ``signals``, ``{"1": [15, 3]}`` to send rank 1 signal 15 at the start of its third training step. The
answer is the list of exit codes.
"""

import importlib
import json
import os
import socket
import sys


def command_line(*arguments: str) -> None:
    from colocam.cli import main  # noqa: PLC0415

    sys.argv = ["colocam", *arguments]
    main()


def _signal_at(number: int, step: int) -> None:
    from colocam.training import loop  # noqa: PLC0415

    plain, steps = loop.sgd_step, iter(range(1, 10_000))

    def signalling(*arguments):
        if next(steps) == step:
            os.kill(os.getpid(), number)
        return plain(*arguments)

    loop.sgd_step = signalling


def _start(job: dict, rank: int, port: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        if job["world"] > 1:
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": job["world"], "MASTER_PORT": port}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in place.items()}}
        if (found := job.get("signals", {}).get(str(rank))) is not None:
            _signal_at(*found)
        module, _, function = job["call"].partition(":")
        getattr(importlib.import_module(module), function)(*job["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - printed for the test
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    import signal  # noqa: PLC0415

    import colocam.cli  # noqa: PLC0415
    import colocam.evaluation.run_evaluation
    import colocam.training  # noqa: F401

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        job = json.loads(line)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        children = [_start(job, rank, port) for rank in range(job["world"])]
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)


if __name__ == "__main__":
    serve()
