"""``python -m colocam`` is the command ``colocam``; ``torchrun -m colocam`` starts it in several processes.

Tests: tests/training/test_processes.py.
"""

from colocam.cli import run

if __name__ == "__main__":
    run()
