"""`manyclass samples`: small files to try the commands on."""

from pathlib import Path
from typing import Annotated

import typer

from ..data.samples import write_samples
from . import output, ranks


@output.answers_errors
@ranks.alone
def samples(
    folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="Print the names as JSON.")] = False,
) -> None:
    """Write small data files to try the commands on: those that the documents name.

    Tables of news with columns id, topic and body (news.csv, test.csv, news.parquet; new.csv without topics),
    svmlight text (big.svm, big.svm.gz, test.svm, more.svm, part-0.svm, part-1.svm), and XMC text with several labels
    per row (train.txt, test.txt). Nothing is written if one of them is already there.

    \b
    Examples:
      manyclass samples
      manyclass train news.csv --text-column body --label-column topic
    """
    paths = [str(path) for path in write_samples(folder)]
    if as_json:
        typer.echo(output.to_json({"files": paths}))
    else:
        for path in paths:
            typer.echo(path)
