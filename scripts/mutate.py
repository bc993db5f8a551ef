"""Mutation testing: break one Python file in many small ways, and list the mutants that no test notices.

    .venv/bin/python scripts/mutate.py src/manyclass/problems/binary.py tests/problems -k "hinge or logistic"

Everything after the file is passed to pytest. The mutated source exists only in memory. Each mutant runs in a fork of
a process that has already imported what the tests import, so it costs little more than the tests. Tests that start
other interpreters run the original file there.
"""

import argparse
import ast
import contextlib
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(str(ROOT / folder) + os.sep for folder in ("src", "tests", "benchmarks", "scripts"))
OPERATORS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
OPPOSITES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all"}
OPPOSITES |= {right: left for left, right in OPPOSITES.items()}
REMOVED = (ast.Raise, ast.Assign, ast.AugAssign, ast.Expr, ast.Delete, ast.Continue, ast.Break)


def variants(node: ast.AST) -> Iterator[ast.AST | str]:
    """Yield replacements for a node: other expressions, or the text of a statement."""
    match node:
        case ast.Compare(left, operators, right):
            for place, operator in enumerate(operators):
                for other in OPERATORS[type(operator)]:
                    yield ast.Compare(left, [*operators[:place], other(), *operators[place + 1 :]], right)
        case ast.BinOp(left, operator, right):
            yield from (ast.BinOp(left, other(), right) for other in OPERATORS.get(type(operator), ()))
        case ast.BoolOp(operator, values):
            yield from (ast.BoolOp(other(), values) for other in OPERATORS[type(operator)])
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            yield ast.Constant(value + 1)
        case ast.Name(name, ast.Load()) if name in OPPOSITES:
            yield ast.Name(OPPOSITES[name])
        case ast.Attribute(value, name) if name in OPPOSITES:
            yield ast.Attribute(value, OPPOSITES[name])
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant) or value.value is not None:
            yield "return None"
        case ast.Expr(ast.Constant()):
            return  # a docstring
        case ast.AnnAssign(value=ast.expr()):
            yield "pass"
        case _ if isinstance(node, REMOVED):
            yield "pass"


def below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes to mutate, without annotations and messages."""
    yield node
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from below(child)


def mutants(source: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number and the new text of each mutated line, and the whole mutated source."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node in below(ast.parse(source)):
        conditions = [node.test] if isinstance(node, ast.If | ast.While) else []
        found = [(node, new) for new in variants(node)]
        found += [(test, ast.UnaryOp(ast.Not(), test)) for test in conditions if not list(variants(test))]
        for old, new in found:
            begin, end = begins[old.lineno - 1] + old.col_offset, begins[old.end_lineno - 1] + old.end_col_offset
            text = new if isinstance(new, str) else f"({ast.unparse(new)})"
            mutated = source[:begin] + text.encode() + source[end:]
            changed = mutated[begins[old.lineno - 1] :].split(b"\n", 1)[0]
            yield old.lineno, changed.decode().strip(), mutated


class Mutated(importlib.machinery.SourceFileLoader):
    """Finds one module and loads it from mutated source instead of its file."""

    def __init__(self, path: Path, source: bytes):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        super().__init__(".".join(parts).removesuffix(".__init__"), str(path))
        self.source = source

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> object:
        return compile(self.source, self.path, "exec", dont_inherit=True)


def run_tests(arguments: list[str]) -> int:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        return pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *arguments])


def passes(path: Path, source: bytes, tests: list[str], seconds: int) -> bool:
    """Return whether the tests pass with this source, in a fork of this process."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            signal.alarm(seconds)
            for name, module in list(sys.modules.items()):
                if (getattr(module, "__file__", None) or "").startswith(OURS) and name != "__main__":
                    del sys.modules[name]
            sys.meta_path.insert(0, Mutated(path, source))
            os._exit(run_tests(tests))
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=150, help="try a seeded sample of at most this many mutants")
    parser.add_argument("--seed", type=int, default=0)
    options, tests = parser.parse_known_args()
    path = options.file.resolve()
    source = path.read_bytes()

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        run_tests(["--collect-only", *tests])
        started = time.monotonic()
        if not passes(path, source, tests, 3600):
            sys.exit("the tests fail without any mutation")
        seconds = 10 + 3 * round(time.monotonic() - started)

        found = list(mutants(source))
        tried = sorted(random.Random(options.seed).sample(found, min(options.most, len(found))))
        survivors = 0
        for line, changed, mutated in tried:
            if passes(path, mutated, tests, seconds):
                survivors += 1
                print(f"{options.file}:{line}: {changed}", flush=True)
    killed = len(tried) - survivors
    print(f"{options.file}: killed {killed} of {len(tried)} mutants ({len(found)} possible)")


if __name__ == "__main__":
    main()
