"""Digests of whole files: every change of bytes is noticed, and nothing is read twice without need."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from colocam.utils import digests as file_digests
from colocam.utils.digests import SMALL, FileDigests


@pytest.fixture
def reads(monkeypatch):
    """Names of the files that were read; digests are remembered as soon as a file is a tick of the clock old."""
    names, plain = [], file_digests._of_bytes
    monkeypatch.setattr(file_digests, "SETTLED", 0.0)
    monkeypatch.setattr(file_digests, "_of_bytes", lambda path: names.append(path.name) or plain(path))
    return names


def settle():
    time.sleep(0.02)


@pytest.fixture
def video(tmp_path):
    """A file that is large enough to be remembered, and not of this moment."""
    (tmp_path / "video.mp4").write_bytes(bytes(SMALL))
    os.utime(tmp_path / "video.mp4", (1, 1))
    settle()
    return tmp_path / "video.mp4"


def blake2(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def test_digests_are_those_of_b2sum(tmp_path):
    first, second = tmp_path / "a.jpg", tmp_path / "b.jpg"
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    assert FileDigests().of_file(first) == blake2(b"one")
    lines = f"{blake2(b'one')}  a.jpg\n{blake2(b'two')}  b.jpg\n"
    assert FileDigests().of_files([first, second]) == blake2(lines.encode())
    assert FileDigests().of_files([first]) != FileDigests().of_file(first)


def test_a_file_is_read_once_until_it_changes(tmp_path, video, reads):
    memory = tmp_path / "memory.jsonl"
    digests = FileDigests(memory)
    before = digests.of_file(video)
    assert digests.of_file(video) == before
    digests.save()
    assert FileDigests(memory).of_file(video) == before
    assert reads == ["video.mp4"]
    settle()
    video.write_bytes(bytes(SMALL - 1) + b"x")
    os.utime(video, (1, 1))  # the same name, inode, size and time
    assert FileDigests(memory).of_file(video) == blake2(bytes(SMALL - 1) + b"x")
    (tmp_path / "moved").mkdir()
    video.rename(tmp_path / "moved" / "other.mp4")
    assert FileDigests(memory).of_file(tmp_path / "moved" / "other.mp4") != before


def test_a_file_that_has_just_changed_is_not_remembered(tmp_path):
    video = tmp_path / "video.mp4"
    digests = FileDigests()
    for last in (b"a", b"b", b"c"):  # may fall into one tick of the clock
        video.write_bytes(bytes(SMALL) + last)
        assert digests.of_file(video) == blake2(bytes(SMALL) + last)


def test_a_damaged_memory_costs_time_alone(tmp_path, video, reads):
    memory = tmp_path / "memory.jsonl"
    digests = FileDigests(memory)
    before = digests.of_file(video)
    digests.save()
    whole = memory.read_text()
    stated = json.loads(whole)[0]
    for text in (whole[:-9], "[" * 9999, "\xff", "{}\n1\n", json.dumps([stated, 1]), json.dumps([stated, "x"])):
        memory.write_text(text, encoding="utf-8")
        assert FileDigests(memory).of_file(video) == before
    assert len(reads) == 7
    memory.write_text(whole[:20] + "\n" + whole)
    assert FileDigests(memory).of_file(video) == before
    assert len(reads) == 7


def test_a_memory_that_cannot_be_written_is_no_error(tmp_path, video, reads):
    for memory in (tmp_path / "nowhere" / "memory.jsonl", Path("/proc/memory.jsonl"), video.parent):
        digests = FileDigests(memory)
        assert digests.of_file(video) == blake2(bytes(SMALL))
        digests.save()
    assert len(reads) == 3


def test_quick_digests_read_no_large_file(tmp_path, reads):
    small, large, memory = tmp_path / "small.mp4", tmp_path / "large.mp4", tmp_path / "memory.jsonl"
    small.write_bytes(b"one")
    large.write_bytes(bytes(SMALL))
    settle()
    assert FileDigests().quick(small) == blake2(b"one")
    assert FileDigests().quick(large) is None
    assert FileDigests().quick_of_files([small]) == FileDigests().of_files([small])
    assert FileDigests().quick_of_files([large]) is None
    reads.clear()
    digests = FileDigests(memory)
    digests.of_file(large)
    digests.of_files([large, small])
    digests.save()
    others = FileDigests(None, [memory, tmp_path / "missing.jsonl"])
    assert others.quick(large) == blake2(bytes(SMALL))
    assert others.quick_of_files([large, small]) == digests.of_files([large, small])
    assert reads == ["large.mp4", "large.mp4", "small.mp4"]
    with pytest.raises(IsADirectoryError):
        digests.quick(tmp_path)
