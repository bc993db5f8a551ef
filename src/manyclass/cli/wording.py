"""Rewrite errors of the library for the command line: options instead of parameters."""

import functools
import re

from ..data import ParseError
from .panels import Parameters

SEVERAL_LABELS = (
    "several labels per row are trained one-vs-rest (--loss squared_hinge, hinge, logistic, ppd_squared_hinge or "
    "ppd_hinge) or by --loss max_margin"
)
# The counterparts of `data.remedies`, which are for Python.
REMEDIES = {
    "several_labels": f"{SEVERAL_LABELS}, or give every row one label",
    "index_zero": "the model was trained on features numbered from 1; number those of this file the same way",
    "too_large": "scale the feature, or train with --dtype float64",
    "too_large_for_float64": "scale the feature",
    "nonfinite": "remove the feature, or write a finite value",
    "unknown_feature": "omit --strict to ignore features that the model was not trained on",
    "columns": "pass the columns to read with --text-column and --label-column, or the format with --format",
    "delimiter": "pass the field separator with --delimiter",
    "unlabelled": "fill them in, or skip these rows with --skip-unlabelled",
}
# Options for parameters of functions.
OF_FUNCTIONS = {"Cs": "--C", "cv": "--folds", "min_df": "--min-df", "min_members": "--min-members"}


@functools.cache
def options() -> dict[str, str]:
    """Return the option for each parameter that an error of the library may name."""
    from . import train_options  # noqa: F401 - declares options

    return Parameters.options | OF_FUNCTIONS


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Match parameters with a value, and without; of the latter, only names that are not English words."""
    alone = "|".join(name for name in options() if "_" in name)
    return (
        re.compile(rf"(?<![\w-])({'|'.join(options())})=('[^']*'|\"[^\"]*\"|[^\s,;:()]+)"),
        re.compile(rf"(?<![\w-])({alone})(?![\w=])"),
    )


def told(error: ValueError | ImportError) -> str:
    """Return the message of an error for users of the command line."""
    return error.told(REMEDIES) if isinstance(error, ParseError) else with_options(str(error))


def with_options(message: str) -> str:
    """Replace parameters by options: `solver='newton'` becomes --solver newton."""

    def option(found: re.Match[str]) -> str:
        name, value = options()[found[1]], found[2].strip("'\"")
        return name if value == "True" else f"{name} {value}"

    given, alone = _patterns()
    return alone.sub(lambda found: options()[found[1]], given.sub(option, message))
