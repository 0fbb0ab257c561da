"""Tables as text."""

import csv
import io


def csv_rows(path):
    """Rows of a CSV file: name of the column → text."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def numbers_of(table):
    """Numbers of the frames in a localization table."""
    return [int(row["frame"]) for row in csv_rows(table)]


def csv_table(path, columns, *rows):
    """Write rows of text below the names of the columns; gives the path."""
    path.write_text("\n".join([columns, *rows]) + "\n", encoding="utf-8")
    return path
