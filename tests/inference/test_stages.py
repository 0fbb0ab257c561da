"""Parts of a batch are worked on in threads and joined in order."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from colocam.inference.stages import in_parts


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 16])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_parts_of_a_batch_are_joined_in_order(count, parts):
    seen = []

    def work(part):
        seen.append(len(part))
        return [2 * one for one in part]

    with ThreadPoolExecutor(parts) as pool:
        assert in_parts(pool, work, list(range(count)), parts) == [2 * n for n in range(count)]
        assert len(seen) <= parts
        assert sum(seen) == count


def test_an_error_in_a_part_is_raised():
    def work(part):
        if 5 in part:
            raise ValueError("a broken map")
        return part

    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="a broken map"):
        in_parts(pool, work, list(range(8)), 4)
