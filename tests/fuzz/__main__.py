"""The command line of the fuzzer: ``python -m tests.fuzz --minutes 10 --seed 0``."""

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.runner import Runner, Summary
from tests.fuzz.verdict import CLEAN, FAULTS


def main() -> int:
    """Run the fuzzer; 1 if there was a fault."""
    asked = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="colocam-fuzz-"))
    try:
        return _run(asked, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(asked: argparse.Namespace, folder: Path) -> int:
    runner = Runner(folder / "work", seed=asked.seed, jobs=asked.jobs, faults=asked.faults)
    numbers = iter(range(asked.count)) if asked.count else itertools.count()
    began = time.monotonic()
    until = began + (60 * asked.minutes if asked.minutes else float("inf"))
    summary = runner.run(numbers, until)
    _print(summary, asked.seed, time.monotonic() - began)
    for fault, shown in summary.faults.items():
        print(f"{len(shown)} × {fault}\n    kept in {asked.faults / f'{asked.seed}-{shown[0]}'}")
    return 1 if summary.faults else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description="Mutated inputs through every command.")
    parser.add_argument("--minutes", type=float, help="stop after this time; default 10 unless --count is given")
    parser.add_argument("--count", type=int, help="number of inputs; the same ones on every machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="inputs at the same time")
    parser.add_argument("--faults", type=Path, default=Path("fuzz-faults"), help="folder for inputs that show a fault")
    asked = parser.parse_args()
    if asked.minutes is None and asked.count is None:
        asked.minutes = 10.0
    return asked


def _print(summary: Summary, seed: int, seconds: float) -> None:
    kinds = (*CLEAN, *FAULTS)
    total: Counter[str] = sum(summary.counts.values(), Counter())
    print(f"\nseed {seed}: {total.total()} inputs in {seconds:.0f} s")
    print(f"{'':20}{'inputs':>8}" + "".join(f"{kind:>18}" for kind in kinds))
    for name, counts in [*sorted(summary.counts.items()), ("all", total)]:
        print(f"{name:20}{counts.total():>8}" + "".join(f"{counts[kind]:>18}" for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
