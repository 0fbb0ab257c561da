"""Videos are known by all their bytes, which are read once."""

from colocam.serve.library import Library
from colocam.serve.store import EventStore, open_workspace


def test_a_second_start_reads_no_video_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("colocam.utils.digests.SETTLED", -1.0)
    video, model = tmp_path / "video.mp4", tmp_path / "model.onnx"
    video.write_bytes(bytes(4 << 20))
    model.write_bytes(b"a model")

    def refuse(_path):
        raise AssertionError("the video was read again")

    with open_workspace(tmp_path / "page") as workspace:
        store = EventStore(workspace.database)
        added = Library(workspace, store, [model], load=str, quick=str).add(video)
        again = Library(workspace, store, [model], load=str, quick=str)
        monkeypatch.setattr("colocam.utils.digests._of_bytes", refuse)
        assert again.add(video).id == added.id
        store.close()
