"""OpenCV's own messages, which would stand between ours."""

import cv2


def silence_opencv() -> None:
    """Stop OpenCV writing to standard error: our errors say what is wrong with a file."""
    if hasattr(cv2.utils, "logging"):
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    else:  # before OpenCV 4.13
        cv2.setLogLevel(0)  # type: ignore[attr-defined]
