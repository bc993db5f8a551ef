"""Help that lists the options of a command in groups, such as Data and Training."""

from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose plain help groups options by `rich_help_panel`, in the order in which the panels first appear.

    An option without a panel joins the option before it.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then one section per panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        panel = "Options"
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            if param.param_type_name == "argument":
                sections.setdefault("Arguments", []).append(record)
                continue
            panel = getattr(param, "rich_help_panel", None) or panel
            sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def option_in(panel: str) -> Any:
    """Return `typer.Option` for the options of one panel."""
    return partial(typer.Option, rich_help_panel=panel)


in_data = option_in("Data")
in_model = option_in("Model")
in_training = option_in("Training")
in_disk = option_in("Disk")
in_cluster = option_in("Cluster")
in_output = option_in("Output")
