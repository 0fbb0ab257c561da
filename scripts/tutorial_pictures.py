"""Make the pictures of docs/guide/tutorial.md and of the README from tagged clips and a model that was trained on them.

    python scripts/tutorial_pictures.py CLIPS RUN WORK docs/images

CLIPS holds ``train/<tag>-<number>/*.jpg`` and ``test/<tag>-<number>/*.jpg``; the table ``manifest.csv`` beside it has
the true boxes (shot, frame, present, x1, y1, x2, y2), of which the tutorial draws one as a correction. The clips of the
documentation show creatures of Freedoom (BSD license) in its own maps, recorded with ViZDoom (MIT license); RUN was
trained on the tags of the training clips alone. WORK keeps videos and results: a second call does only what is missing.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from playwright.sync_api import Page, sync_playwright
from serve_screenshots import CHROMIUM, close_dialog, until

from colocam import Localizer
from colocam.types import Image
from colocam.video.drawing import draw_localization, draw_objects
from colocam.video.fence import decode
from colocam.video.writer import VideoWriter

TAGS = ("imp", "cacodemon", "knight", "skull")
NEW = ("imp-01", "cacodemon-01", "knight-00", "skull-00")
"""The test clips that play the new videos."""
FPS = 8
TILE = (320, 240)
GAP = 6
QUALITY = 82


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("clips", "run", "work", "out"):
        parser.add_argument(name, type=Path)
    asked = parser.parse_args()
    for clip in NEW:
        make_video(asked.clips / "test" / clip, asked.work / "recordings" / f"{clip}.mp4")
    save(asked.out / "tutorial-folders.jpg", folders(asked.clips / "train"))
    shots = {clip: localized(asked.run, asked.work / "recordings" / f"{clip}.mp4", asked.work) for clip in NEW}
    early = [frames[len(frames) // 4] for frames in shots.values()]  # a rule, so that no frame is chosen by hand
    save(asked.out / "readme.jpg", grid([one[0] for one in early] + [one[1] for one in early], len(NEW)))
    first = next(iter(shots.values()))
    save(
        asked.out / "tutorial-localize.jpg",
        grid([first[at][1] for at in np.linspace(0, len(first) - 1, 4, dtype=int)], 4),
    )
    with serving(asked.run, asked.work) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1180, "height": 760}, color_scheme="light").new_page()
        for name in steps(page, address, asked.clips.parent / "manifest.csv"):
            page.screenshot(path=asked.out / f"tutorial-{name}.jpg", type="jpeg", quality=QUALITY)
        browser.close()


def make_video(images: Path, target: Path) -> None:
    """Write a folder of images as a video, unless it is there."""
    if target.exists():
        return
    files = sorted(images.glob("*.jpg"))
    with VideoWriter(target, *TILE, FPS) as video:
        for file in files:
            video.write(read(file))


def read(file: Path) -> Image:
    """An image of a clip, RGB."""
    return np.asarray(cv2.cvtColor(cv2.resize(cv2.imread(str(file)), TILE), cv2.COLOR_BGR2RGB), np.uint8)


def folders(train: Path) -> Image:
    """One row per tag: a frame of its first four clips, labeled with the path of the video."""
    tiles = []
    for tag in TAGS:
        for clip in sorted(train.glob(f"{tag}-*"))[:4]:
            image = read(sorted(clip.glob("*.jpg"))[3])
            tiles.append(draw_localization(image, label=(f"{tag}/{clip.name}.mp4",)))
    small = [
        np.asarray(cv2.resize(tile, None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA), np.uint8) for tile in tiles
    ]
    return grid(small, 4)


def localized(run: Path, video: Path, work: Path) -> list[tuple[Image, Image]]:
    """Each frame with an object as it is, and with heat map, box and label; kept in ``work``."""
    kept = work / f"{video.stem}.npz"
    if not kept.exists():
        found = {one.frame: one for one in Localizer.load(run, tag=video.stem.partition("-")[0])(video)}
        pairs = [
            (frame.image, draw_objects(frame.image, found[frame.index], overlay="heat")) for frame in decode(video)
        ]
        shown = [found[index].presence or 0.0 for index in sorted(found)]
        np.savez_compressed(kept, pairs=np.array(pairs), presence=np.array(shown))
    with np.load(kept) as stored:
        return [
            (pair[0], pair[1]) for pair, there in zip(stored["pairs"], stored["presence"], strict=True) if there > 0.5
        ]


def grid(tiles: list[Image], columns: int) -> Image:
    """Tiles of one size in rows, on white."""
    height, width = (side + GAP for side in tiles[0].shape[:2])
    canvas = np.full((-(-len(tiles) // columns) * height - GAP, columns * width - GAP, 3), 255, np.uint8)
    for index, tile in enumerate(tiles):
        y, x = index // columns * height, index % columns * width
        canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return canvas


def save(path: Path, image: Image) -> None:
    """Write a JPEG file."""
    cv2.imwrite(str(path), cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])


@contextmanager
def serving(run: Path, work: Path) -> Iterator[str]:
    """Run ``colocam serve`` on the new videos; gives its address."""
    command = [sys.executable, "-m", "colocam", "serve", str(run), str(work / "recordings"), "-o", str(work / "page")]
    with subprocess.Popen(
        [*command, "--no-open"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)
        yield next(word for word in line.split() if word.startswith("http://"))
        process.terminate()


def steps(page: Page, address: str, truth: Path) -> Iterator[str]:
    """Walk through the page as the tutorial does, and draw one true box; gives the name of each view."""
    page.goto(address)
    until(page, f"document.querySelectorAll('.video.ready').length === {len(NEW)}", seconds=1800)
    until(page, "[...document.querySelectorAll('.video img')].every((one) => one.complete)")
    yield "library"
    page.locator(".video.ready a", has_text=NEW[0]).first.click()
    until(page, "window.colocam?.player.position >= 0")
    for _ in range(2):  # the first frame to check shows only an edge of the creature
        page.keyboard.press("j")
        page.wait_for_timeout(1000)
    until(page, "document.querySelector('.queue [aria-current=true], .queue:empty')")
    yield "check"
    shown = int(page.locator(".number[data-frame]").first.get_attribute("data-frame") or 0)
    x1, y1, x2, y2 = true_box(truth, f"test/{NEW[0]}", shown)
    area = page.locator(".overlay").bounding_box()
    assert area is not None
    x, y, width, height = (area[side] for side in ("x", "y", "width", "height"))
    # From the lower right corner: a drag that begins inside the model's box would move it.
    page.mouse.move(x + x2 / TILE[0] * width - 1, y + y2 / TILE[1] * height - 1)
    page.mouse.down()
    page.mouse.move(x + x1 / TILE[0] * width, y + y1 / TILE[1] * height, steps=5)
    page.mouse.up()
    page.wait_for_timeout(1500)
    yield "correct"
    page.get_by_role("button", name="Export…").click()
    page.wait_for_selector("#format")
    page.select_option("#format", "cvat")
    yield "export"
    close_dialog(page)


def true_box(table: Path, shot: str, frame: int) -> tuple[float, float, float, float]:
    """The first true box of a frame in pixels, from the table of the clips."""
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["shot"] == shot and Path(row["frame"]).stem == f"{frame:05d}" and row["present"] == "1":
                return float(row["x1"]), float(row["y1"]), float(row["x2"]), float(row["y2"])
    raise LookupError(f"{table}: no box in frame {frame} of {shot}")


if __name__ == "__main__":
    main()
