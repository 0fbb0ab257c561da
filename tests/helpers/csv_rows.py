"""Tables as they are written."""

import csv
import io


def csv_rows(path):
    """Rows of a CSV file: name of the column → text."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def numbers_of(table):
    """Numbers of the frames in a localisation table."""
    return [int(row["frame"]) for row in csv_rows(table)]
