"""Playlists: small files that name other files or addresses, or themselves, as what to read."""

from functools import cache

import av

PLAYLISTS = frozenset({"hls", "dash", "concat", "imf", "sdp", "webm_dash_manifest", "avisynth", "vapoursynth"})
"""FFmpeg's formats of playlists and of scripts."""
_MARKS = {b"#EXTM3U": "hls", b"<MPD": "dash", b"ffconcat": "concat", b"<CompositionPlaylist": "imf", b"v=0": "sdp"}


@cache
def other_formats() -> str:
    """All of FFmpeg's formats except :data:`PLAYLISTS`, as FFmpeg's option ``format_whitelist`` takes them."""
    return ",".join(sorted(av.formats_available - PLAYLISTS))


def playlist_format(beginning: bytes) -> str | None:
    """FFmpeg's name of the playlist whose first bytes are ``beginning``; None if it is no known playlist."""
    return next((name for mark, name in _MARKS.items() if mark in beginning), None)
