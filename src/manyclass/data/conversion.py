"""From text to a block store, in one pass over the text and little memory.

Rows are dealt to bins at random, by a hash of their number and the seed. Bins are kept in memory until there is no
more room; then all of them are spilled to one file. In the end the parts of each bin become a block, or several if
they are too many rows for one.

| file | what it holds |
|---|---|
| `conversion.json` | how far it has come; replaced after each spill and each block |
| `spill-5.safetensors` | part 5 of all bins |

A conversion that was stopped goes on when it is asked for again. A store is there when its manifest is, in the end.
"""

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .block_file import Block, block_of, block_tensors, join_blocks, read_block
from .block_store import MANIFEST, BlockEntry, BlockStore, Manifest, StoreError
from .checksums import write_checked
from .class_names import class_tensors
from .compression import PlaneWriter
from .row_parts import Place, RowPart, TextRows
from .streams import open_atomic
from .tensor_file import TensorFile, tensor_file_content

JOURNAL = "conversion.json"
# Shares of the memory: what bins may hold before they are spilled, and what a block may be when it is read.
BUFFERED, BLOCK = 1 / 4, 1 / 16
LARGEST_BLOCK = 64 << 20
LEAST_MEMORY = 64 << 20
# Text is as much longer than what it is compressed to, if nothing else is known.
COMPRESSED = 4
MOST_BINS = 1 << 14
# Rows of an input of unknown length are dealt to so many bins.
UNKNOWN = 64
_Part = tuple[dict[str, np.ndarray], dict[str, str]]  # of a bin: the arrays of a block and its metadata


@dataclass
class Journal:
    """How far a conversion has come."""

    settings: dict[str, Any]
    bins: int = 0
    place: Place = field(default_factory=Place)
    rows: int = 0
    min_index: int = np.iinfo(np.int64).max
    max_index: int = -1
    multilabel: bool = False
    spills: list[str] = field(default_factory=list)
    blocks: list[BlockEntry] = field(default_factory=list)
    dealt: int = 0  # bins that are blocks by now

    def write(self, folder: Path) -> None:
        with open_atomic(folder / JOURNAL) as out:
            out.write(json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> "Journal | None":
        try:
            content = json.loads((folder / JOURNAL).read_bytes())
        except FileNotFoundError:
            return None
        content["place"] = Place(**content["place"])
        content["blocks"] = [BlockEntry(**entry) for entry in content["blocks"]]
        return cls(**content)


def shuffled(ids: np.ndarray, seed: int) -> np.ndarray:
    """A number for each row that looks random and depends on nothing else."""
    mixed = (ids.astype(np.uint64) + np.uint64(seed & 0xFFFFFFFFFFFFFFFF)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class Bins:
    """Rows that were dealt and not spilled yet."""

    def __init__(self, count: int, seed: int):
        self._seed = seed
        self._bins: list[list[Block]] = [[] for _ in range(count)]
        self.nbytes = 0

    def add(self, block: Block) -> None:
        bins = (shuffled(block.ids, self._seed) % np.uint64(len(self._bins))).astype(np.int64)
        order = np.argsort(bins, kind="stable")
        dealt = block.take(order)
        ends = np.searchsorted(bins[order], np.arange(len(self._bins) + 1))
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            if begin < end:
                self._bins[number].append(_slice(dealt, int(begin), int(end)))
        self.nbytes += dealt.nbytes

    def take(self) -> Iterator[tuple[int, Block]]:
        """The blocks of all bins that have any rows; then they have none."""
        for number, parts in enumerate(self._bins):
            if parts:
                yield number, join_blocks(parts)
                parts.clear()
        self.nbytes = 0


def _slice(block: Block, begin: int, end: int) -> Block:
    rows = slice(block.indptr[begin], block.indptr[end])
    labels = slice(block.label_ptr[begin], block.label_ptr[end])
    return Block(
        block.ids[begin:end],
        block.indptr[begin : end + 1] - block.indptr[begin],
        block.indices[rows],
        block.values[rows],
        block.label_ptr[begin : end + 1] - block.label_ptr[begin],
        block.labels[labels],
        block.n_features,
    )


class LabelCodes:
    """Labels numbered as they come."""

    def __init__(self, known: Sequence[Any] = ()):
        self.labels = list(known)
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self.spilled = len(self.labels)

    def encode(self, labels: np.ndarray) -> np.ndarray:
        found, where = np.unique(labels, return_inverse=True)
        codes = np.empty(found.size, np.int32)
        for place, label in enumerate(found.tolist()):
            code = self._codes.setdefault(label, len(self.labels))
            if code == len(self.labels):
                self.labels.append(label)
            codes[place] = code
        return codes[where]


class Conversion:
    """One conversion, from its first row or from where it was stopped.

    Parameters
    ----------
    rows : TextRows
        What to read.
    folder : str or path-like
        Where the store is to be: a new or empty folder, or one that a conversion of the same has left.
    memory : int
        Bytes that may be used, besides those of the program itself.
    blocks : int, optional
        How many blocks are wanted, if not as many as follow from the memory.
    seed : int
        Of the dealing.
    compression, level
        As `PlaneWriter` has them.
    """

    def __init__(
        self,
        rows: TextRows,
        folder: str | os.PathLike[str],
        *,
        memory: int,
        blocks: int | None = None,
        seed: int = 0,
        compression: str = "zstd",
        level: int | None = None,
    ):
        if memory < LEAST_MEMORY:
            raise ValueError(f"{memory} bytes of memory are too few; {LEAST_MEMORY} are needed to convert")
        if blocks is not None and not 1 <= blocks <= MOST_BINS:
            raise ValueError(f"blocks must be from 1 to {MOST_BINS}, got {blocks}")
        self._rows, self._folder, self._memory, self._wanted = rows, Path(folder), memory, blocks
        self._seed = seed
        self._writer = PlaneWriter(compression, level)
        self._largest = min(int(memory * BLOCK), LARGEST_BLOCK)
        self._settings = {
            "files": rows.fingerprint(),
            "xmc": rows.xmc,
            "dtype": rows.dtype.name,
            "blocks": blocks,
            "seed": seed,
            "compression": compression,
            "level": level,
        }
        self._journal = Journal(self._settings)
        self._labels = LabelCodes()
        self._bins: Bins | None = None

    def run(self) -> BlockStore:
        """Convert."""
        self._begin()
        journal = self._journal
        if journal.place.file < len(self._rows.paths):
            for part in self._rows.parts(journal.place):
                self._deal(part)
            self._spill(Place(len(self._rows.paths)))
        self._write_blocks()
        self._commit()
        return BlockStore(self._folder)

    def _begin(self) -> None:
        if (self._folder / MANIFEST).exists():
            raise StoreError(f"{self._folder} is a store already; name another folder, or append to it")
        self._folder.mkdir(parents=True, exist_ok=True)
        found = Journal.read(self._folder)
        if found is None:
            if any(self._folder.iterdir()):
                raise StoreError(f"{self._folder} is not empty; name a new folder")
            return
        different = [name for name, value in self._settings.items() if found.settings.get(name) != value]
        if different:
            raise StoreError(
                f"{self._folder} holds a conversion that was stopped, with other {', '.join(different)}; repeat it "
                "as it was, or name another folder"
            )
        if any(set(file) == {"name"} for file in self._settings["files"]):
            raise StoreError(f"{self._folder} holds a conversion of a stream, which cannot be read again; remove it")
        self._journal = found
        labels: list[Any] = []
        for spill in found.spills:
            labels += json.loads(TensorFile(self._folder / spill).arrays()["labels"].tobytes())
        self._labels = LabelCodes(labels)
        self._rows.min_index, self._rows.max_index = found.min_index, found.max_index

    # ---- Dealing

    def _deal(self, part: RowPart) -> None:
        journal = self._journal
        if journal.bins == 0:
            journal.bins = self._wanted or self._choose_bins(part)
        if self._bins is None:
            self._bins = Bins(journal.bins, self._seed)
        n = part.indptr.size - 1
        journal.multilabel |= bool((np.diff(part.label_ptr) != 1).any())
        ids = np.arange(journal.rows, journal.rows + n)
        largest = int(part.indices.max(initial=-1)) + 1
        labels = self._labels.encode(part.labels)
        self._bins.add(Block(ids, part.indptr, part.indices, part.values, part.label_ptr, labels, largest))
        journal.rows += n
        if self._bins.nbytes > self._memory * BUFFERED:
            self._spill(part.end)

    def _choose_bins(self, first: RowPart) -> int:
        """As many as give blocks of the right size, if the rest of the text is like its beginning."""
        text = 0
        for file in self._settings["files"]:
            if "size" not in file:
                return UNKNOWN
            with open(file["name"], "rb") as opened:
                packed = opened.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5")
            text += file["size"] * (COMPRESSED if packed else 1)
        arrays = (first.indptr, first.indices, first.values, first.label_ptr, first.labels)
        share = sum(array.nbytes for array in arrays) / max(1, first.text_bytes)
        return int(np.clip(-(-text * share // self._largest), 1, MOST_BINS))

    def _spill(self, place: Place) -> None:
        journal = self._journal
        tensors: dict[str, np.ndarray] = {}
        metadata: dict[str, str] = {}
        for number, block in self._bins.take() if self._bins else ():
            columns, about = block_tensors(block, self._writer)
            tensors |= {f"{number}/{name}": array for name, array in columns.items()}
            metadata |= {f"{number}/{name}": value for name, value in about.items()}
        new = json.dumps(self._labels.labels[self._labels.spilled :]).encode()
        tensors["labels"] = np.frombuffer(new, np.uint8)
        name = f"spill-{len(journal.spills)}.safetensors"
        with open_atomic(self._folder / name) as out:
            write_checked(out, tensor_file_content(tensors, metadata))
        self._labels.spilled = len(self._labels.labels)
        journal.spills.append(name)
        journal.place = place
        journal.min_index, journal.max_index = int(self._rows.min_index), int(self._rows.max_index)
        journal.write(self._folder)

    # ---- Blocks

    def _write_blocks(self) -> None:
        journal = self._journal
        spills = [_by_bins(TensorFile(self._folder / name)) for name in journal.spills]
        self._base = 0 if journal.min_index == 0 else 1
        self._frequencies = np.zeros(max(0, journal.max_index + 1 - self._base), np.int64)
        for entry in journal.blocks:
            self._count(read_block(self._folder / entry.file))
        for number in range(journal.dealt, journal.bins):
            for block in self._blocks_of([spill[number] for spill in spills if number in spill]):
                counted = _counted_from_0(block, self._base)
                self._count(counted)
                name = f"block-0-{len(journal.blocks)}.safetensors"
                journal.blocks.append(write_block(self._folder / name, counted, self._writer))
            journal.dealt = number + 1
            journal.write(self._folder)

    def _count(self, block: Block) -> None:
        self._frequencies += np.bincount(block.indices[block.values != 0], minlength=self._frequencies.size)

    def _blocks_of(self, parts: Sequence[_Part]) -> Iterator[Block]:
        """The parts of a bin as one block, or as several, each with rows from all parts."""
        size = sum(int(about["nnz"]) * (int(about["value_bytes"]) + int(about["index_bytes"])) for _, about in parts)
        pieces = 1 if self._wanted else max(1, -(-size // (2 * self._largest)))
        for piece in range(pieces):
            chosen = []
            for columns, about in parts:
                block = block_of(columns, about)
                if pieces > 1:
                    mine = shuffled(block.ids, self._seed + 1) % np.uint64(pieces) == piece
                    block = block.take(np.flatnonzero(mine))
                if block.n_rows:
                    chosen.append(block)
            if chosen:
                yield join_blocks(chosen)

    def _commit(self) -> None:
        journal = self._journal
        if journal.rows == 0:
            names = ", ".join(file["name"] for file in self._settings["files"])
            raise StoreError(f"{names}: no rows")
        classes, class_of_code = np.unique(np.array(self._labels.labels), return_inverse=True)
        tensors = class_tensors(classes) | {
            "frequencies": self._frequencies,
            "class_of_code": class_of_code.astype(np.int32),
            "removed": np.empty(0, np.int64),
        }
        name = "catalogue-0.safetensors"
        with open_atomic(self._folder / name) as out:
            _, checksum = write_checked(out, tensor_file_content(tensors, {}))
        Manifest(
            generation=0,
            rows=journal.rows,
            nnz=sum(entry.nnz for entry in journal.blocks),
            n_features=self._frequencies.size,
            next_id=journal.rows,
            index_base=self._base,
            value_bytes=self._rows.dtype.itemsize,
            multilabel=journal.multilabel,
            catalogue=name,
            catalogue_checksum=checksum,
            blocks=tuple(journal.blocks),
        ).write(self._folder)
        for file in (*journal.spills, JOURNAL):
            (self._folder / file).unlink()


def _by_bins(spill: TensorFile) -> dict[int, _Part]:
    """The parts of all bins in a spill."""
    found: dict[int, _Part] = {}
    for things, which in ((spill.arrays(), 0), (spill.metadata, 1)):
        for name, thing in things.items():
            number, slash, column = name.partition("/")
            if slash:
                found.setdefault(int(number), ({}, {}))[which][column] = thing
    return found


def _counted_from_0(block: Block, base: int) -> Block:
    return replace(block, indices=block.indices - base, n_features=block.n_features - base) if base else block


def write_block(path: Path, block: Block, writer: PlaneWriter) -> BlockEntry:
    """Write a block under its name when it is whole."""
    with open_atomic(path) as out:
        size, checksum = write_checked(out, tensor_file_content(*block_tensors(block, writer)))
    return BlockEntry(path.name, block.n_rows, int(block.indices.size), size, checksum)
