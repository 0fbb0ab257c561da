"""Places at even distances."""


def evenly(length: int, count: int) -> list[int]:
    """At most ``count`` different indices of ``length``, at even distances: the middles of equal parts."""
    if length <= count:
        return list(range(length))
    return [int((i + 0.5) * length / count) for i in range(count)]
