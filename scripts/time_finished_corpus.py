"""Time ``colocam label`` where nothing is left to do: python scripts/time_finished_corpus.py MODEL FOLDER [--films N].

FOLDER gets so many small files as films, and a small valid parquet file as the part of each.
"""

import argparse
import hashlib
import io
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from colocam.corpus.film_keys import film_key
from colocam.corpus.films import read_films
from colocam.corpus.label import label_films
from colocam.corpus.labelling import LabelSettings
from colocam.corpus.part_files import part_path


def main(model: Path, folder: Path, count: int) -> None:
    """Make the films and the parts, label once to list them, then time the same command."""
    films, labels = folder / "films", folder / "labels"
    for index in range(count):
        film = films / f"{index // 1000:03}" / f"{index:06}.mp4"
        film.parent.mkdir(parents=True, exist_ok=True)
        film.write_bytes(index.to_bytes(8, "big"))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"frame": pa.array([0, 1], pa.int64())}), buffer)
    key = LabelSettings(model.absolute(), labels, labels / "digests" / "a.jsonl").key()
    for film in read_films(films, labels):
        digest = hashlib.blake2b(film.path.read_bytes(), digest_size=32).hexdigest()
        part = part_path(labels, film_key(key, film, digest))
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(buffer.getvalue())
    for title in ("first, which lists the parts", "finished"):
        began = time.perf_counter()
        label_films(model, films, labels)
        print(f"{title}: {time.perf_counter() - began:.1f} s for {count} films")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--films", type=int, default=100_000)
    given = parser.parse_args()
    main(given.model, given.folder, given.films)
