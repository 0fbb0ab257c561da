"""Corrections are appended, versioned, idempotent, on the disk, and undone without end."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.serve.guard import RefusalError
from colocam.serve.marks import Action, Correction, History, history_of
from colocam.serve.store import MARKER, EventStore, open_workspace


def edit(frame, kind="none"):
    return Correction(kind="edit", actions=[Action(kind=kind, start=frame, stop=frame + 1)])


@pytest.fixture
def store(tmp_path):
    store = EventStore(tmp_path / "corrections.sqlite")
    yield store
    store.close()


def test_a_change_name_belongs_to_one_video(store):
    store.append("video", "client-1", 0, edit(3))
    with pytest.raises(ColocamError, match=r"client-1 .* another video"):
        store.append("other video", "client-1", 0, edit(3))
    assert store.history("other video")[0] == 0
    assert store.append("other video", "client-2", 0, edit(3)).version == 1


def test_a_folder_of_version_0_2_0_keeps_its_videos_and_corrections(tmp_path):
    """Its tables, a column and the folder of results have the old word for a video."""
    with open_workspace(tmp_path / "page") as workspace:
        store = EventStore(workspace.database)
        store.append("abc", "client-1", 0, edit(3))
        store.close()
        with sqlite3.connect(workspace.database) as database:
            database.execute("INSERT INTO videos VALUES ('abc', 'cat/01', '/videos/01.mp4', 'cat')")
            database.executescript(
                "ALTER TABLE videos RENAME TO films; ALTER TABLE events RENAME COLUMN video TO film;"
            )
        database.close()
        workspace.video("abc", "csv").write_text("frame\n", encoding="utf-8")
    (tmp_path / "page" / "videos").rename(tmp_path / "page" / "films")
    with open_workspace(tmp_path / "page") as workspace:
        assert workspace.video("abc", "csv").read_text(encoding="utf-8") == "frame\n"
        store = EventStore(workspace.database)
        assert [(video.id, video.name, video.tag) for video in store.videos()] == [("abc", "cat/01", "cat")]
        assert store.history("abc")[0] == 1
        assert store.append("abc", "client-2", 1, edit(4)).version == 2
        store.close()


def test_a_full_disk_loses_nothing_and_is_said(store, tmp_path):
    store.append("video", "client-1", 0, edit(3))
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count={pages}")  # SQLite then fails as on a full disk
    long = Correction(kind="edit", actions=[Action(kind="none", start=at, stop=at + 1) for at in range(1000)])
    with pytest.raises(RefusalError, match=r"corrections\.sqlite: the disk is full: free some space"):
        store.append("video", "client-2", 1, long)
    assert store.history("video") == (1, History([edit(3)], []))
    store._database.execute("PRAGMA max_page_count=1000000")
    assert store.append("video", "client-2", 1, long).version == 2
    with sqlite3.connect(tmp_path / "corrections.sqlite") as other:
        assert other.execute("SELECT COUNT(*) FROM events").fetchone() == (2,)


def test_a_stored_change_that_cannot_be_read_leaves_the_others(store, tmp_path, capsys):
    store.append("video", "client-1", 0, edit(3))
    with sqlite3.connect(tmp_path / "corrections.sqlite") as other:
        other.execute("INSERT INTO events VALUES ('video', 2, 'client-2', '2026-01-01', '{\"kind\": \"newer\"}')")
    assert store.append("video", "client-3", 2, edit(5)).version == 3
    version, history = store.history("video")
    assert version == 3
    assert [action.start for action in history.actions] == [3, 5]
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert "correction 2 of video video cannot be read" in " ".join(said.split())
    store.append("video", "client-4", 3, Correction(kind="undo"))
    store.append("video", "client-5", 4, Correction(kind="undo"))  # of the one that cannot be read
    assert [action.start for action in store.history("video")[1].actions] == [3]


def test_events_cannot_be_changed_or_deleted(store, tmp_path):
    store.append("video", "client-1", 0, edit(3))
    with sqlite3.connect(tmp_path / "corrections.sqlite") as other:
        for statement in ("DELETE FROM events", "UPDATE events SET video = 'x'"):
            with pytest.raises(sqlite3.IntegrityError, match="kept"):
                other.execute(statement)


@given(st.lists(st.sampled_from(["edit", "undo", "redo"]), max_size=30))
def test_history_is_that_of_a_list_with_a_pointer(kinds):
    edits, pointer = [], 0
    changes = []
    for number, kind in enumerate(kinds):
        if kind == "edit":
            edits, pointer = [*edits[:pointer], edit(number)], pointer + 1
        else:
            pointer = max(0, min(len(edits), pointer + (1 if kind == "redo" else -1)))
        changes.append(edit(number) if kind == "edit" else Correction(kind=kind))
    history = history_of(changes)
    assert history.done == edits[:pointer]
    assert history.undone == edits[pointer:][::-1]


CHILD = """
import sys
from pathlib import Path
from colocam.serve.store import EventStore
from colocam.serve.marks import Action, Correction
store = EventStore(Path(sys.argv[1]))
for number in range(100000):
    change = Correction(kind="edit", actions=[Action(kind="none", start=number, stop=number + 1)])
    store.append("video", f"client-{number}", number, change)
    print(number, flush=True)
"""


def test_what_was_said_to_be_saved_survives_a_kill(tmp_path):
    database = tmp_path / "corrections.sqlite"
    with subprocess.Popen([sys.executable, "-c", CHILD, database], stdout=subprocess.PIPE, text=True) as child:
        said = [int(child.stdout.readline()) for _ in range(20)]
        os.kill(child.pid, signal.SIGKILL)
        said += [int(line) for line in child.stdout.read().splitlines()]
    store = EventStore(database)
    stored = [event.correction.actions[0].start for event in store.events("video")]
    store.close()
    assert stored[: len(said)] == said
    assert len(stored) <= len(said) + 1


def test_a_second_server_on_the_same_folder_is_refused(tmp_path):
    with open_workspace(tmp_path / "page") as first:
        with pytest.raises(ColocamError, match="in use by"), open_workspace(tmp_path / "page"):
            pass
        first.port = 1234
        first.save()
    with open_workspace(tmp_path / "page") as second:
        assert (second.token, second.port) == (first.token, 1234)


@pytest.mark.parametrize("text", ["", "[1]", '{"token": "short", "port": 1, "model": ""}', '{"token": "x'])
def test_a_damaged_file_of_the_token_is_named(tmp_path, text):
    with open_workspace(tmp_path):
        pass
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(ColocamError, match=r"colocam-serve\.json is damaged: delete it"), open_workspace(tmp_path):
        pass


def test_nobody_else_can_read_the_token_at_any_moment(tmp_path, monkeypatch):
    modes = []
    written = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (modes.append(stat.S_IMODE(os.fstat(file).st_mode)), written(file)))
    opened = os.open

    def watched(path, flags, mode=0o777, **more):
        if MARKER in os.fsdecode(path):
            modes.append(mode)
        return opened(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", watched)
    with open_workspace(tmp_path / "page") as workspace:
        workspace.port = 1234
        workspace.save()
    assert modes == [0o600] * 4
    assert stat.S_IMODE((tmp_path / "page" / MARKER).stat().st_mode) == 0o600


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ColocamError, match="not a folder of 'colocam serve'"), open_workspace(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_damaged_database_is_named(tmp_path):
    (tmp_path / "corrections.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(ColocamError, match="damaged"):
        EventStore(tmp_path / "corrections.sqlite")


@pytest.mark.parametrize(
    "table", ["videos (title TEXT)", "events (video TEXT, at REAL)", "contents (digest BLOB)", "music (title TEXT)"]
)
def test_the_database_of_another_program_is_named_and_left_as_it_is(tmp_path, table):
    path = tmp_path / "corrections.sqlite"
    with sqlite3.connect(path) as other:
        other.execute(f"CREATE TABLE {table}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(ColocamError, match=r"another program.*move it away"):
        EventStore(path)
    assert path.read_bytes() == before
