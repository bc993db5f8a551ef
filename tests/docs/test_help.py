"""Every example in --help works as printed, in a folder with the files that it needs."""

import pytest
from following import run
from pages import commands

from manyclass.cli.app import app
from manyclass.data.samples import write_samples

COLUMNS = "--text-column body --label-column topic"
MODELS = [f"manyclass train news.csv {COLUMNS}", "manyclass train big.svm"]
STORE = ["manyclass convert big.svm store/ --blocks 8"]
# The commands that a user has run before.
BEFORE = {
    "train": STORE,
    "predict": MODELS,
    "evaluate": MODELS,
    "inspect": MODELS + STORE,
    "compress": MODELS[:1],
    "index": ["manyclass train train.txt --loss ppd_squared_hinge"],
    "remove": [*STORE, "seq 100 120 > spam.txt"],
}
WITHOUT_EXAMPLES = {"reproduce"}
HELP = {command.callback.__name__: command.callback.__doc__ for command in app.registered_commands}


def examples(text):
    """The commands of the lines below `Examples:`, up to the next empty one."""
    _, _, below = text.partition("Examples:\n")
    return commands("\n".join(line.strip() for line in below.split("\n\n")[0].split("\n")))


@pytest.mark.parametrize("name", HELP)
def test_examples_work(name, empty_folder):
    assert bool(examples(HELP[name])) == (name not in WITHOUT_EXAMPLES)
    if name != "samples":
        write_samples(empty_folder)
    for command in BEFORE.get(name, []) + examples(HELP[name]):
        run(command, f"manyclass {name} --help")
