"""Run the steps of the Dockerfile without a container engine: python scripts/check_container.py.

The folder that ``COPY .`` would send is copied (tracked files but for those of .dockerignore), each ``RUN python`` is
run with the Python of an empty environment, and the default command is started until its page answers. What needs a
container (apt-get, users, volumes) is left out; a compiler must be there.
"""

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def steps(text: str) -> list[str]:
    """The instructions of a Dockerfile, one string each."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return [" ".join(line.split()) for line in lines]


def send(target: Path) -> None:
    """Copy what ``COPY .`` sends."""
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    for name in listed.stdout.splitlines():
        parts = [part for pattern in left_out for part in Path(name).parts[:1] if fnmatch.fnmatch(part, pattern)]
        if not parts and (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def run_steps(folder: Path) -> list[str]:
    """Run the steps; the arguments of the default command."""
    for name in ("source", "wheels", "page"):
        (folder / name).mkdir()
    send(folder / "source")
    shutil.copy(ROOT / "constraints.txt", folder)
    venv.create(folder / "environment", with_pip=True)
    python, variables = folder / "environment" / "bin" / "python", {}
    command: list[str] = []
    for step in steps((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        word, _, rest = step.partition(" ")
        if word == "ARG":
            name, _, value = rest.partition("=")
            variables[name] = value
        elif word == "CMD":
            command = json.loads(rest)
        elif word == "RUN" and rest.startswith("python "):
            shell = re.sub(r"(?<![\w/])/(source|wheels|constraints)", rf"{folder}/\1", rest).partition(" && rm -rf")[0]
            print(f"RUN {shell}", flush=True)
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
            environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
            subprocess.run(["/bin/sh", "-c", str(python) + shell.removeprefix("python")], env=environment, check=True)
    return [str(python.parent / "colocam"), *(word.replace("/page", str(folder / "page")) for word in command)]


def answers(command: list[str], home: Path) -> str:
    """Start the default command and read its page."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the token becomes a cookie
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                if found := re.search(r"http://\S+", line):
                    with browser.open(found[0], timeout=60) as page:
                        return str(page.read().decode())
        except urllib.error.URLError as error:
            sys.exit(f"the page does not answer: {error}")
        finally:
            process.terminate()
    sys.exit("the command ended before it printed an address")


def main() -> None:
    """Run the steps, and exit with 1 where one fails."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as name:
        page = answers(run_steps(Path(name)), Path(name))
    if "colocam" not in page:
        sys.exit("the page is not that of colocam")
    print("the page answers")


if __name__ == "__main__":
    main()
