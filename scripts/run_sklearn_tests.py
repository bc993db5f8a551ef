"""Run scikit-learn's own tests, unmodified, with our estimators in place of theirs.

    python scripts/run_sklearn_tests.py                     all four files: about five minutes
    python scripts/run_sklearn_tests.py test_svm.py -v      one of them, listing the tests that did not pass

The tests are those of the installed scikit-learn; `sklearn_stand_ins.py` has the classes that they get. Known
failures, and tests that run but do not apply, are listed in `sklearn_tests.csv` with the reason. If any other test
fails, the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import sklearn

HERE = Path(__file__).resolve().parent
TABLE = HERE / "sklearn_tests.csv"
MODULES = {
    "test_svm.py": "sklearn.svm.tests.test_svm",
    "test_logistic.py": "sklearn.linear_model.tests.test_logistic",
    "test_multiclass.py": "sklearn.tests.test_multiclass",
    "test_calibration.py": "sklearn.tests.test_calibration",
}
OUTCOMES = ("pass", "fail", "not applicable")


def main() -> int:
    """Run the named files, print counts, and exit with an error if a test that is not in the table fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help=f"any of {', '.join(MODULES)}; all by default")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print the reason for each test that did not pass"
    )
    asked = parser.parse_args()
    if unknown := set(asked.file) - set(MODULES):
        parser.error(f"no file {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    files = asked.file or list(MODULES)
    with TABLE.open(newline="") as file:
        known = [line for line in csv.DictReader(file) if line["file"] in files]
    tests = [judged(test, known) for test in run(files)]
    show(tests, files, asked.verbose)
    unexpected = [test for test in tests if test["outcome"] == "fail" and not test["reason"]]
    for test in unexpected:
        print(f"unexpected failure: {test['file']}::{test['test']}: {test['why']}")
    for line in known:
        if not any(test["line"] is line and test["found"] == "fail" for test in tests):
            print(f"no longer fails: {line['file']}::{line['test']}; take it out of {TABLE.name}")
    return 1 if unexpected or not tests else 0


def run(files: list[str]) -> list[dict[str, Any]]:
    """Run pytest without the settings of this repository, and collect the outcomes that the stand-ins write."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder, "outcomes")
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "sklearn_stand_ins", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "--tb=no", "--pyargs", *(MODULES[file] for file in files)],
            cwd=folder,
            # One thread for linear algebra, too: the problems are tiny.
            env=os.environ | {"PYTHONPATH": path, "SKLEARN_OUTCOMES": str(outcomes), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):
            sys.exit(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return [json.loads(line) for line in outcomes.read_text().splitlines()]


def judged(test: dict[str, Any], known: list[dict[str, str]]) -> dict[str, Any]:
    """Return a test with its reason from the table, which may also turn a failure into "not applicable"."""
    matches = (line for line in known if line["file"] == test["file"] and fnmatchcase(test["test"], line["test"]))
    line = next(matches, None) if test["outcome"] == "fail" else None
    more = {"found": test["outcome"], "line": line, "reason": line["reason"] if line else test["why"]}
    if line is None and test["outcome"] == "fail":
        more["reason"] = ""
    return test | more | ({"outcome": line["outcome"]} if line else {})


def show(tests: list[dict[str, Any]], files: list[str], verbose: bool) -> None:
    """Print counts per file, then how often each reason occurs."""
    print(f"scikit-learn {sklearn.__version__}")
    print(f"{'':22}" + "".join(f"{outcome:>16}" for outcome in OUTCOMES))
    for file in [*files, "together"]:
        count = Counter(test["outcome"] for test in tests if file in (test["file"], "together"))
        print(f"{file:22}" + "".join(f"{count[outcome]:16}" for outcome in OUTCOMES))
    for outcome in OUTCOMES[1:]:
        print(f"\n{outcome}:")
        reasons = Counter(test["reason"] or "unexpected" for test in tests if test["outcome"] == outcome)
        for reason, number in reasons.most_common():
            print(f"{number:5}  {reason}")
            if verbose:
                for test in tests:
                    if test["outcome"] == outcome and (test["reason"] or "unexpected") == reason:
                        print(f"{'':9}{test['file']}::{test['test']}")
    print()


if __name__ == "__main__":
    sys.exit(main())
