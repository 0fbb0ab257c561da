"""Where the server listens, whom it answers, and which videos it shows."""

import json
import signal
import socket
import subprocess

import pytest

from colocam.errors import ColocamError
from colocam.serve.server import _listen, hosts_of, is_loopback, videos_of_run
from tests.helpers.endless_pass import endless


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_this_machine_alone_is_the_loopback(host):
    assert is_loopback(host)
    assert hosts_of(host, 80) == {"127.0.0.1:80", "localhost:80", "[::1]:80"}


def test_another_address_is_answered_by_its_own_name():
    hosts = hosts_of("192.168.7.9", 8620)
    assert "192.168.7.9:8620" in hosts
    assert "127.0.0.1:8620" not in hosts


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", ""])
def test_all_addresses_at_once_and_names_are_refused(host):
    with pytest.raises(ColocamError, match="host must be"):
        is_loopback(host)


def test_a_port_that_is_taken_since_the_last_start_is_said(capsys):
    """A page that is still open waits for the server there."""
    with _listen("127.0.0.1", 0, 0) as other:
        last = other.getsockname()[1]
        with _listen("127.0.0.1", None, last) as listening:
            assert listening.getsockname()[1] != last
            assert listening.proto == socket.IPPROTO_TCP  # otherwise asyncio delays answers by 40 ms
        assert f"port {last} of the last start is taken" in capsys.readouterr().err
        with pytest.raises(ColocamError, match=f"cannot listen at 127.0.0.1:{last}.*--port"):
            _listen("127.0.0.1", last, 0)
        assert capsys.readouterr().err == ""


def test_videos_of_a_run_are_whole_ones_that_it_was_not_trained_on(tmp_path):
    videos = {name: tmp_path / f"{name}.mp4" for name in ("train", "val", "test", "shot")}
    clips = []
    for name, path in videos.items():
        path.touch()
        split = "test" if name == "shot" else name
        own = {"name": name, "video": name, "tag": "cat", "split": split, "path": str(path), "start": 0.0, "end": None}
        clips.append({**own, "frames": []})
    clips[3]["start"] = 3.0
    clips.append({**clips[2], "name": "gone", "video": "gone", "path": str(tmp_path / "gone.mp4")})
    data = {"tags": ["cat"], "boxes": False, "frames": str(tmp_path), "clips": clips}
    (tmp_path / "data.json").write_text(json.dumps(data))
    assert videos_of_run(tmp_path) == [(videos["val"], "val", "cat"), (videos["test"], "test", "cat")]
    assert videos_of_run(tmp_path / "model.onnx") == []


def test_a_run_that_does_not_exist_is_named(colocam, tmp_path):
    outcome = colocam("serve", tmp_path / "nothing", "--no-open", "-o", tmp_path / "page")
    assert "there is no run folder, ONNX file or ready model with this name" in outcome.error
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_wait_for_a_pass(onnx_file, tmp_path, make_video, number):
    video = make_video(tmp_path / "video.mp4", 5)
    command = endless("serve", onnx_file, video, "--out", tmp_path / "page", "--no-open")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.stdout.readline() != "a pass began\n":
                assert process.poll() is None
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
