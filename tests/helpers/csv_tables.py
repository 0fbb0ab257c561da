"""Tables as text."""


def csv_table(path, columns, *rows):
    """Write rows of text below the names of the columns; gives the path."""
    path.write_text("\n".join([columns, *rows]) + "\n", encoding="utf-8")
    return path
