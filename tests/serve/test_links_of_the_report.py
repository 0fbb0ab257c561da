"""The links of the report's worst videos open each video at its worst frame on a running page."""

from dataclasses import replace
from urllib.parse import urlsplit

from colocam.data.frame_cache import clip_digest
from colocam.report.gallery import Case, CaseImage, Group
from colocam.report.next_steps import PORT, worst_videos
from colocam.types import Clip
from colocam.utils.digests import FileDigests


def link_of(one, frame, monkeypatch):
    """The report's link to the video of the page and to its worst frame, with the port of this server."""
    clip = Clip("cat/01", "cat", "test", one.library.video(one.video).path, "")
    clip = replace(clip, digest=clip_digest(clip, FileDigests()))
    monkeypatch.setattr("colocam.report.next_steps.run_clips", lambda _: {"cat/01": clip})
    images = (CaseImage("CoLo-CAM", "", "", overlap=0.1),)
    group = Group("worst", "", "", (Case("cat", "cat/01", frame, "cat", 0.9, images),))
    (worst,) = worst_videos(one.library.workspace.root, [group], [])
    assert f":{PORT}/" in worst.link
    return worst.link.replace(f":{PORT}/", f":{urlsplit(one.address).port}/")


def test_a_link_opens_the_worst_frame(one, monkeypatch):
    one.page.goto(link_of(one, 23, monkeypatch))
    one.until(f"window.colocam?.video.id === '{one.video}'")
    one.until_frame(23)


def test_the_next_link_is_followed_where_the_video_is_open(one, monkeypatch):
    one.open()
    one.page.goto(link_of(one, 31, monkeypatch))
    one.until_frame(31)
    one.page.goto(link_of(one, 7, monkeypatch))
    one.until_frame(7)


def test_a_link_says_where_the_page_lacks_its_video(one, monkeypatch):
    link = link_of(one, 23, monkeypatch)
    one.library.remove(one.library.video(one.video))
    one.page.goto(link)
    one.until("document.querySelector('[role=alert]')")
    assert "not in the library" in one.page.locator("[role=alert]").inner_text()
