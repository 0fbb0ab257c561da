"""All kinds of inputs with their shares, and the input of a seed and a number."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz import targets_corpus, targets_localize, targets_look, targets_train
from tests.fuzz.case import Bench, Case

# Name → the function that makes an input, and how often it is chosen.
TARGETS: dict[str, tuple[Callable[[Bench], Case], int]] = {
    "localize film": (targets_localize.film, 14),
    "localize - < film": (targets_localize.piped_film, 2),
    "localize folder": (targets_localize.folder, 3),
    "localize images": (targets_localize.images, 5),
    "localize model": (targets_localize.run_model, 7),
    "localize ONNX": (targets_localize.onnx_model, 9),
    "localize --refine": (targets_localize.segmenter, 5),
    "localize options": (targets_localize.options, 7),
    "localize again": (targets_localize.results, 3),
    "train films": (targets_train.train_films, 1),
    "train manifest": (targets_train.train_manifest, 3),
    "train --config": (targets_train.train_config, 4),
    "train options": (targets_train.train_options, 2),
    "train again": (targets_train.train_on, 3),
    "evaluate run": (targets_train.evaluate_run, 4),
    "evaluate --boxes": (targets_train.evaluate_truth, 2),
    "evaluate --dense": (targets_train.evaluate_dense, 2),
    "evaluate --refine": (targets_train.evaluate_refined, 1),
    "score boxes": (targets_train.score_boxes, 5),
    "score maps": (targets_train.score_maps, 4),
    "index frames": (targets_train.index_frames, 3),
    "index archive": (targets_train.index_archive, 3),
    "export table": (targets_look.export_table, 8),
    "export video.json": (targets_look.export_description, 5),
    "export options": (targets_look.export_options, 4),
    "export-model": (targets_look.export_model, 1),
    "review table": (targets_look.review_table, 5),
    "review run": (targets_look.review_run, 2),
    "report": (targets_look.report, 4),
    "label catalogue": (targets_corpus.label_catalogue, 4),
    "label again": (targets_corpus.label_again, 4),
    "export labels": (targets_corpus.export_labels, 4),
    "import": (targets_corpus.import_labels, 10),
    "learn": (targets_corpus.learn, 2),
}


def target_of(seed: int, number: int) -> str:
    """Name of the kind of an input."""
    return _random(seed, number).choices(list(TARGETS), [share for _, share in TARGETS.values()])[0]


def build(seed: int, number: int, corpus: Path, folder: Path) -> Case:
    """Write the files of an input into an empty folder and return its command."""
    random = _random(seed, number)
    make, _ = TARGETS[random.choices(list(TARGETS), [share for _, share in TARGETS.values()])[0]]
    return make(Bench(random, corpus, folder))


def _random(seed: int, number: int) -> Random:
    return Random(f"{seed}-{number}")
