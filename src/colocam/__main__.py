"""``python -m colocam`` is the command ``colocam``; ``torchrun -m colocam`` starts it in several processes."""

from colocam.cli import main

if __name__ == "__main__":
    main()
