"""A run, or anybody's predictions, measured against true boxes."""
