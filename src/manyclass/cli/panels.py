"""Options in groups: as dataclasses for the commands, and as panels such as Data and Training in their help."""

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, TypeVar, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

Command = TypeVar("Command", bound=Callable[..., None])


class GroupedCommand(TyperCommand):
    """A command whose plain help groups options by `rich_help_panel`, in the order in which the panels first appear.

    An option without a panel joins the option before it.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        panel = "Options"
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            if param.param_type_name == "argument":
                sections["Arguments"].append(record)
                continue
            if param.name != "help":
                panel = getattr(param, "rich_help_panel", None) or panel
            sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Parameters:
    """A group of options whose fields are named after the parameters of the estimators.

    `options` has the option of each such parameter, in all groups, except hidden ones.
    """

    options: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        for name, kind in cls.__annotations__.items():
            option = kind.__metadata__[0]
            if option.hidden:
                continue
            # The first name of an option declared with `Annotated` is in the place of its default.
            flags = [flag for flag in (option.default, *option.param_decls) if isinstance(flag, str)]
            flags.sort(key=lambda flag: not flag.startswith("--"))
            cls.options[name] = flags[0].partition("/")[0] if flags else f"--{name.replace('_', '-')}"


def takes_groups(command: Command) -> Command:
    """Let a parameter of a command that is a dataclass stand for the options that its `Annotated` fields declare."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    declared: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        declared += _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @functools.wraps(command)
    def grouped(**given: Any) -> None:
        made = {
            name: kind(**{option.name: given.pop(option.name) for option in _options(kind)})
            for name, kind in groups.items()
        }
        command(**given, **made)

    grouped.__signature__ = Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in declared]
    )
    return grouped  # type: ignore[return-value]


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
        if get_origin(hints[field.name]) is Annotated
    ]


def given_in(group: Any) -> dict[str, Any]:
    """Return the options of a group that have a value."""
    values = {field.name: getattr(group, field.name) for field in fields(group)}
    return {name: value for name, value in values.items() if value is not None}


def option_in(panel: str) -> Any:
    """Return `typer.Option` for the options of one panel."""
    return functools.partial(typer.Option, rich_help_panel=panel)


in_data = option_in("Data")
in_model = option_in("Model")
in_training = option_in("Training")
in_disk = option_in("Disk")
in_cluster = option_in("Cluster")
in_output = option_in("Output")
