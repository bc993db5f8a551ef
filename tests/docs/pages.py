"""The pages of the documents, and the blocks of code on them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# sh and python are run; text is for formulas, folders and output.
LANGUAGES = ("sh", "python", "text")
FENCE = re.compile(r" *```(.*)")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, its language, and its lines."""

    page: Path
    line: int
    language: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    found, begin, language = [], 0, ""
    lines = page.read_text().split("\n")
    for number, line in enumerate(lines, 1):
        if not (fence := FENCE.fullmatch(line)):
            continue
        if not begin:
            begin, language = number, fence[1]
        else:
            found.append(Block(page, begin, language, "\n".join(lines[begin : number - 1]) + "\n"))
            begin = 0
    assert not begin, f"{page}:{begin}: this fence is never closed"
    return found


def commands(code: str) -> list[str]:
    """The commands of a block of shell, one per line or over lines that end with a backslash, without comments."""
    joined = code.replace("\\\n", " ").split("\n")
    bare = [re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined]
    return [line for line in bare if line]
