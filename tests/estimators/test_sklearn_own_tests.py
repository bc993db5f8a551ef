"""scikit-learn's own tests, run with our estimators in place of theirs; `make sklearn-tests` runs all four files."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_sklearn_tests.py"


@pytest.mark.slow
def test_no_other_test_fails_than_those_with_a_reason():
    done = subprocess.run([sys.executable, SCRIPT, "test_svm.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    passed, failed = (int(word) for word in done.stdout.split("together", 1)[1].split()[:2])
    assert passed >= 10 and failed == 0


def test_an_unexpected_failure_is_one(monkeypatch, capsys):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import run_sklearn_tests

    told = {"file": "test_svm.py", "why": "ValueError: x", "used": ["LinearSVC"]}
    found = [told | {"test": "test_linearsvc[42]", "outcome": "fail"}]
    found += [told | {"test": "test_linear_svm_convergence_warnings[42]", "outcome": "fail"}]
    monkeypatch.setattr(run_sklearn_tests, "run", lambda files: found)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "test_svm.py"])
    assert run_sklearn_tests.main() == 1
    assert "unexpected failure: test_svm.py::test_linearsvc[42]: ValueError: x" in capsys.readouterr().out
    found.pop(0)
    assert run_sklearn_tests.main() == 0  # listed with a reason
