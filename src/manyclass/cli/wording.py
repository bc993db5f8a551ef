"""Errors of the library in the words of the command line: options in place of parameters."""

import re

from ..data import ParseError

SEVERAL_LABELS = (
    "several labels per row are trained one-vs-rest (--loss squared_hinge, hinge, logistic, ppd_squared_hinge or "
    "ppd_hinge) or by --loss max_margin"
)
# As `data.remedies` has them for Python.
REMEDIES = {
    "several_labels": f"{SEVERAL_LABELS}, or give every row one label",
    "index_zero": "the model was trained on features counted from 1: number those of this file alike",
    "too_large": "scale the feature, or train with --dtype float64",
    "too_large_for_float64": "scale the feature",
    "nonfinite": "remove the feature, or write a finite value",
    "unknown_feature": "leave out --strict to ignore features that the model was not trained on",
    "columns": "name the ones to read with --text-column and the like, or say with --format what the file holds",
    "delimiter": "say what separates the fields with --delimiter",
    "unlabelled": "fill them in, or leave these rows out with --skip-unlabelled",
}
# Options that are not called as the parameter is, with - for _.
RENAMED = {
    "C": "-C",
    "Cs": "--C",
    "cv": "--folds",
    "lam": "--lambda",
    "fit_intercept": "--intercept",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "threshold": "--drop",
    "shards": "--shards",
}
SAME = (
    *("checkpoint", "class_weight", "dtype", "engine", "every", "feature_reduction", "gamma", "intercept_scaling"),
    *("leagues", "loss", "max_iter", "memory", "method", "min_df", "min_members", "resume", "rounds", "solver"),
    *("stop", "tau", "time_limit", "tol", "together", "update"),
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME} | RENAMED
GIVEN = re.compile(rf"(?<![\w-])({'|'.join(OPTIONS)})=('[^']*'|\"[^\"]*\"|[^\s,;:()]+)")
# Alone, only names that are no English words.
ALONE = re.compile(rf"(?<![\w-])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w=])")


def told(error: ValueError | ImportError) -> str:
    """What a user of the command line should read of an error of the library."""
    return error.told(REMEDIES) if isinstance(error, ParseError) else with_options(str(error))


def with_options(message: str) -> str:
    """Name options where a message names parameters: `solver='newton'` becomes --solver newton."""

    def option(found: re.Match[str]) -> str:
        name, value = OPTIONS[found[1]], found[2].strip("'\"")
        return name if value == "True" else f"{name} {value}"

    return ALONE.sub(lambda found: OPTIONS[found[1]], GIVEN.sub(option, message))
