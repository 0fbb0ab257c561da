"""Counts that tests compare results with."""


def inclusive_iou(a, b):
    """IoU of two boxes whose corners are pixels that belong to them."""
    left, top, right, bottom = max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
    common = max(right - left + 1, 0) * max(bottom - top + 1, 0)
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return common / (sum(areas) - common)
