"""The command `manyclass samples`."""

from pathlib import Path
from typing import Annotated

import typer

from ..data.samples import write_samples
from . import output, ranks
from .options import AsJson


@output.answers_errors
@ranks.alone
def samples(
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path("."), as_json: AsJson = False
) -> None:
    """Write small data files to try the commands on. The documentation uses them too.

    Tables of news with columns id, topic and body (news.csv, test.csv, news.parquet; new.csv without topics),
    svmlight text (big.svm, big.svm.gz, test.svm, more.svm, part-0.svm, part-1.svm), and XMC text with several labels
    per row (train.txt, test.txt). If one of them exists already, nothing is written.

    \b
    Examples:
      manyclass samples
      manyclass train news.csv --text-column body --label-column topic
    """
    report = {"files": [str(path) for path in write_samples(folder)]}
    output.show_report(report, lambda _: typer.echo("\n".join(report["files"])), as_json=as_json)
