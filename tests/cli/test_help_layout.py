"""Help fits a terminal of 80 columns, in groups, with the everyday options first."""

import re

import pytest

from manyclass.cli.app import app

COMMANDS = [command.callback.__name__ for command in app.registered_commands]
# The first sections after the arguments, and options that must be among the first of them.
FIRST = {
    "train": (["Data", "Model", "Training", "Output"], ["--text-column", "--label-column", "--format"]),
    "predict": (["Prediction", "Output", "Data"], ["-k"]),
    "evaluate": (["Evaluation", "Data", "Output"], ["-k"]),
    "inspect": (["Inspection", "Memory estimate", "Data", "Output"], ["--class"]),
    "convert": (["Data", "Store", "Output"], ["--text-column", "--label-column"]),
    "cv": (["Data", "Model", "Training", "Disk", "Output"], ["--text-column", "--label-column"]),
}


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=["manyclass", *COMMANDS])
def test_help_fits_80_columns(shell, command):
    lines = shell(*command, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("command", FIRST)
def test_options_are_grouped_with_everyday_ones_first(shell, command):
    sections, options = FIRST[command]
    lines = shell(command, "--help").stdout.splitlines()
    titles = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[: len(sections) + 1] == ["Arguments", *sections]
    begin = lines.index(f"{sections[0]}:")
    shown = [line.split()[0] for line in lines[begin:] if line.startswith("  -")]
    assert shown[: len(options)] == options


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_once(shell, command):
    _, options = re.split(
        r"^(?:Arguments|Options):$", shell(command, "--help").stdout, maxsplit=1, flags=re.MULTILINE
    )
    names = [line.replace(",", "").split()[0] for line in options.splitlines() if line.startswith("  -")]
    assert len(names) == len(set(names)) and "-h" in names
