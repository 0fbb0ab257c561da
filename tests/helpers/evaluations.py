"""The numbers of an evaluation, as evaluation.json holds them."""


def evaluation(shift=0.0, tags=("cat", "dog"), methods=("layercam", "colocam"), *, validation=True):
    """Averages of 30 and more of the first method, 60 and more of the second, and so on, plus ``shift``."""

    def result(average, protocol):
        return {
            "average": average,
            "classes": {tag: average + i for i, tag in enumerate(tags)},
            "frames": average - 1.5,
            "interval": [average - 4, average + 4],
            "threshold": dict.fromkeys(tags, 0.3) if protocol == "oracle-per-class" else 0.43,
            "top1": {"average": average - 5, "interval": [average - 9, average - 1]},
        }

    protocols = ["oracle-per-class", "oracle-global", *(["validation"] if validation else []), "tags-only"]
    return {
        "format": 2,
        "methods": {
            method: {name: result(30 * place + shift + i, name) for i, name in enumerate(protocols)}
            for place, method in enumerate(methods, 1)
        },
        "classification": {"accuracy": 80 + shift, "interval": [70.0, 90.0], "classes": dict.fromkeys(tags, 80.0)},
        "data": {"split": "test", "frames": 300, "clips": 18, "videos": 18},
    }
