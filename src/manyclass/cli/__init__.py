"""The command line: `manyclass train`, `predict`, `evaluate` and others, one file per command."""

import sys

INTERNAL_ERROR = 1


def main() -> None:
    """Run the command line."""
    try:
        import rich
        import typer
    except ModuleNotFoundError as error:
        message = f'error: the command line needs {error.name}: pip install "manyclass[cli]"'
        print(message, file=sys.stderr)
        sys.exit(INTERNAL_ERROR)
    from .app import app

    app(prog_name="manyclass")
