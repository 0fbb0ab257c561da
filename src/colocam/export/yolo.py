"""YOLO: one text file per image with lines ``class cx cy w h`` as shares of the image's size; empty without a box.

``data.yaml`` names lists of images; the labels of ``images/train/a.jpg`` are in ``labels/train/a.txt``.
"""

from pathlib import Path

import yaml

from colocam.export.frame_images import write_images
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``data.yaml``, ``train.txt``, ``val.txt``, ``labels/`` and, with images, ``images/``.

    A single video serves for both training and validation.
    """
    lists: dict[str, str] = {}
    split_of: dict[str, str] = {}
    for split, videos in labels.splits().items():
        if not videos:
            continue
        split_of |= {video.name: split for video in videos}
        texts = folder / "labels" / split
        texts.mkdir(parents=True)
        names = []
        for video in videos:
            for frame in video.objects_of:
                names.append(f"./images/{split}/{video.image_name(frame)}\n")
                (texts / f"{video.image_stem(frame)}.txt").write_text(_lines(labels, video, frame), encoding="utf-8")
        write_text(folder / f"{split}.txt", "".join(names))
        lists[split] = f"{split}.txt"
        if options.images:
            (folder / "images" / split).mkdir(parents=True)
    if options.images:
        images = folder / "images"
        write_images(labels.videos, lambda video, frame: images / split_of[video.name] / video.image_name(frame))
    data = {"train": lists["train"], "val": lists.get("val", lists["train"]), "names": dict(enumerate(labels.classes))}
    write_text(folder / "data.yaml", yaml.safe_dump(data, allow_unicode=True, sort_keys=False))


def _lines(labels: LabelSet, video: LabelledVideo, frame: int) -> str:
    width, height = video.source.width, video.source.height
    lines = []
    for row in video.objects_of[frame]:
        x1, y1, x2, y2 = video.rows.box[row].tolist()
        shares = ((x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height)
        lines.append(
            " ".join([str(labels.class_index[video.rows.tag[row]]), *(f"{share:.8f}" for share in shares)]) + "\n"
        )
    return "".join(lines)
