"""Run the command line with `python -m manyclass`."""

from .cli import main

if __name__ == "__main__":
    main()
