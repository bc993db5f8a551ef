"""The command line: `manyclass train`, `predict`, `evaluate` and others, one file per command."""

import sys

INTERNAL_ERROR, INTERRUPTED = 1, 130


def main() -> None:
    """Run the command line."""
    try:
        import rich
        import typer
    except ModuleNotFoundError as error:
        message = f'error: the command line needs {error.name}: pip install "manyclass[cli]"'
        print(message, file=sys.stderr)
        sys.exit(INTERNAL_ERROR)
    try:
        from .app import app
    except KeyboardInterrupt:  # imports take a second
        sys.exit(INTERRUPTED)
    app(prog_name="manyclass")
