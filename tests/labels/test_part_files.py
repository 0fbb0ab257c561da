"""Parts are whole or not there, whenever the process that writes them is killed."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from colocam.errors import ColocamError
from colocam.labels.label_folder import count_part, is_whole
from colocam.labels.table import LocalizationTable, read_table
from colocam.types import Box, Localization
from colocam.utils.tables import DamagedTableError


@pytest.fixture
def part(tmp_path):
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"frame": pa.array([0, 1, 1, 4], pa.int64())}), path)
    return path


def test_every_truncation_is_noticed(part):
    content = part.read_bytes()
    assert is_whole(part)
    for length in range(len(content)):
        part.write_bytes(content[:length])
        assert not is_whole(part), length


def test_zeros_are_noticed(part):
    content = part.read_bytes()
    for kept in (0, len(content) // 2, len(content) - 1):
        part.write_bytes(content[:kept] + bytes(len(content) - kept))
        assert not is_whole(part)
    part.unlink()
    assert not is_whole(part)


def test_counts(part):
    assert count_part(part) == (3, 4)


@pytest.mark.parametrize(
    "columns", [{"frame": [[0], [1]]}, {"frame": [{"a": 1}, None]}, {"frame": ["a", None]}, {"other": [1]}]
)
def test_a_part_that_another_program_changed(part, columns):
    pq.write_table(pa.table(columns), part)
    with pytest.raises(ColocamError, match=r"cannot read .*part.parquet: delete it and run 'colocam label' again"):
        count_part(part)


def test_a_flipped_bit_in_the_rows_is_noticed(tmp_path):
    path = tmp_path / "part.parquet"
    with LocalizationTable(path, ["track"]) as table:
        for frame in range(20):
            box = Box(frame, 1.5, frame + 9, 8) if frame % 3 else None
            table.write(Localization(frame, frame / 25, "cat", 0.5, box, frame / 20, None, track=frame))
    content, rows = path.read_bytes(), read_table(path)
    footer = int.from_bytes(content[-8:-4], "little")
    noticed = 0
    for at in range(len(content) - 8 - footer):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            read = read_table(path)
        except DamagedTableError:
            noticed += 1
        else:
            for one, other in zip(read, rows, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"byte {at}")
    assert noticed > footer / 4


KILLED_AT_EACH_STEP = """
import os, signal, sys, warnings
from pathlib import Path
import pyarrow.parquet as pq
from colocam.labels.label_folder import durable, is_whole
from colocam.labels.table import LocalizationTable
from colocam.types import Localization

folder, step = Path(sys.argv[1]), -1

def killing(function):
    def call(*arguments, **named):
        global step
        for after in (False, True):
            step -= 1
            if step == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if not after:
                result = function(*arguments, **named)
        return result
    return call

def commit(target):
    with durable(target), LocalizationTable(target) as table:
        for frame in range(5):
            table.write(Localization(frame, frame / 25, "cat", 0.5, None, 0.0, None))

commit(folder / "aa" / "undisturbed.parquet")
expected = (folder / "aa" / "undisturbed.parquet").read_bytes()
kills = seen_without = seen_with = 0
warnings.simplefilter("ignore", DeprecationWarning)
for number in range(1, 200):
    target = folder / "parts" / f"{number:02}" / "part.parquet"
    child = os.fork()
    if child == 0:
        step = number
        for name in ("open", "close", "fsync", "replace", "mkdir", "unlink", "truncate"):
            setattr(os, name, killing(getattr(os, name)))
        pq.ParquetWriter.write_table = killing(pq.ParquetWriter.write_table)
        pq.ParquetWriter.close = killing(pq.ParquetWriter.close)
        commit(target)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if target.exists():
        assert is_whole(target) and target.read_bytes() == expected, number
        seen_with += 1
    else:
        seen_without += 1
    commit(target)  # the next attempt
    assert target.read_bytes() == expected
    assert [one.name for one in target.parent.iterdir()] == ["part.parquet"], list(target.parent.iterdir())
    if status == 0:
        break
    kills += 1
print(kills, seen_without, seen_with)
"""


def test_killed_between_any_two_steps_of_the_commit(tmp_path):
    """Each child is killed one step later than the one before, until one ends by itself."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_STEP, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kills, without, with_part = map(int, done.stdout.split())
    assert kills >= 10  # create, write, close, sync, rename, sync the folders
    assert without >= 5
    assert with_part >= 5
