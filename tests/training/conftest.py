"""Real processes for the tests of resuming and of several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    """``processes(world, call, *arguments, signals={})`` runs a call in several processes: exit codes and stderr.

    They are forked by one process that has imported everything, since importing torch takes longer than most calls.
    """
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    sink = tmp_path_factory.mktemp("processes") / "stderr"
    server = [sys.executable, "-m", "tests.helpers.forked_processes"]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:

        def run(world, call, *arguments, signals=None):
            sink.write_text("")
            job = {"world": world, "call": call, "arguments": [str(argument) for argument in arguments]}
            process.stdin.write(json.dumps({**job, "stderr": str(sink), "signals": signals or {}}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline()), sink.read_text(encoding="utf-8")

        yield run
        process.kill()
