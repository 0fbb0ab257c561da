"""The demo and its world: synthetic tagged videos with true boxes in a separate table."""
