"""The option `--normalize`: whether rows are scaled to unit length before training."""

from ..data import BlockStore, HashedText, UnitRows
from ..problems import PROBLEMS, ElasticNet
from .inputs import ALWAYS_UNIT
from .output import InputError


def chosen(asked: bool | None, loss: str, drop: float | None = None) -> bool | None:
    """Return the choice of the user, or else True for losses that work best on rows of length 1."""
    return True if asked is None and (isinstance(PROBLEMS[loss], ElasticNet) or drop is not None) else asked


def refuse_for_texts(what: str, asked: bool | None) -> None:
    """Reject `--no-normalize` for texts, whose rows always have length 1."""
    if asked is False:
        raise InputError(f"{what}: {ALWAYS_UNIT}")


def check_store(store: BlockStore, asked: bool | None) -> None:
    """Reject a choice that differs from the one made when the store was converted."""
    scaled = any(isinstance(step, UnitRows | HashedText) for step in store.chain)
    if asked and not scaled:
        raise InputError(
            f"{store.path}: --normalize is too late for a store; convert the data again with --normalize"
        )
    if store.chain.takes_text:
        refuse_for_texts(str(store.path), asked)
    elif asked is False and scaled:
        raise InputError(
            f"{store.path}: --no-normalize is too late, because its rows have length 1; convert the data again "
            "without --normalize"
        )
