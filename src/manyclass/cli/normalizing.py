"""`--normalize`: whether rows are scaled to length 1 before they are trained on."""

from typing import Annotated

import typer

from ..data import BlockStore, HashedText, UnitRows
from ..problems import PROBLEMS, ElasticNet
from .inputs import ALWAYS_UNIT
from .output import InputError

# What a command takes; None leaves it to the loss.
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize",
        help="Scale rows to length 1, also to predict. [default: where the loss does best so]",
    ),
]


def chosen(asked: bool | None, loss: str, drop: float | None = None) -> bool | None:
    """What was asked for, or else True for losses that do best on rows of length 1."""
    return True if asked is None and (isinstance(PROBLEMS[loss], ElasticNet) or drop is not None) else asked


def refuse_for_texts(what: str, asked: bool | None) -> None:
    """Refuse to leave rows of texts as they are: nothing else than rows of length 1 is made of them."""
    if asked is False:
        raise InputError(f"{what}: {ALWAYS_UNIT}")


def check_store(store: BlockStore, asked: bool | None) -> None:
    """Refuse what a store cannot do: its rows were scaled when they were converted, or never are."""
    scaled = any(isinstance(step, UnitRows | HashedText) for step in store.chain)
    if asked and not scaled:
        raise InputError(
            f"{store.path}: --normalize is too late for rows of a store; convert the data anew with --normalize"
        )
    if store.chain.takes_text:
        refuse_for_texts(str(store.path), asked)
    elif asked is False and scaled:
        raise InputError(
            f"{store.path}: --no-normalize is too late, the rows have length 1; convert the data anew without "
            "--normalize"
        )
