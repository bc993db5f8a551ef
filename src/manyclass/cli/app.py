"""The command line application with all commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import manyclass

from ..peers import told_rank
from . import ranks
from .compress import compress
from .convert import convert
from .cv import cv
from .demo import demo
from .evaluate import evaluate
from .index import index
from .inspect import inspect
from .panels import GroupedCommand
from .predict import predict
from .remove import remove
from .reproduce import reproduce
from .samples import samples
from .train import train

HELP = ("-h", "--help")


class Commands(TyperGroup):
    """Under mpirun, only the first rank prints help and errors about the arguments."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        if told_rank() > 0 and not {*HELP, "--version"}.isdisjoint(args):
            ranks.be_silent()
        with ranks.first_speaks():
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: Any) -> Any:
        with ranks.first_speaks():
            return super().invoke(ctx)


app = typer.Typer(
    name="manyclass",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    # Keep tracebacks of defects plain, so that they can be copied into a report.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": [*HELP]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(manyclass.__version__)
        raise typer.Exit


@app.callback()
def manyclass_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train linear classifiers with thousands of classes. Every fit ends with a certificate.

    \b
    Try it on the built-in data set:
      manyclass demo
    Use your own files, or write small ones with manyclass samples. Then train
    a model, inspect it and predict with it:
      manyclass train news.csv --text-column body --label-column topic
      manyclass inspect news.manyclass
      echo "parliament votes on the budget" | manyclass predict news.manyclass -

    \b
    Exit codes:
      0    success
      1    a bug in manyclass, or not enough memory
      2    wrong arguments or data
      3    stopped before the target; the model is written
      130  interrupted; train has written its model
    """


for command in (train, predict, evaluate, inspect, compress, index, convert, remove, cv, reproduce, samples, demo):
    app.command(cls=GroupedCommand)(command)
