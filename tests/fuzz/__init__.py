"""Fuzzing of the command line: mutated inputs through every command, each in a child process with limits.

``python -m tests.fuzz --help`` says how to run it; ``make fuzz`` runs it for ten minutes.

An input is made from a seed and a number alone, so that any of them can be repeated. ``corpus`` holds sound files;
``mutate_*`` change files of one kind; ``targets`` puts a command and its files together; ``child`` runs one input;
``runner`` runs many and ``verdict`` says how each ended.
"""
