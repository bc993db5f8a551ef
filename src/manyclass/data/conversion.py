"""Convert rows from any source to a block store, in one pass and with little memory.

A hash of the row number and the seed deals the rows to random bins. When the bins in memory are full, all of them are
spilled to one file. At the end, the parts of each bin become a block, or several blocks if the bin is too large.
Small bins share a block.

| file | contents |
|---|---|
| `conversion.json` | the journal: progress so far, replaced after each spill and at intervals while writing blocks |
| `spill-5.safetensors` | part 5 of all bins |

Running an interrupted conversion again resumes it. The manifest is written last; only then does the store exist.
Appending works the same way, and the old manifest stays in place until the new one replaces it.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .block_file import Block, block_tensors, join_blocks, read_block
from .block_store import BlockStore
from .checksums import write_checked
from .compression import PlaneWriter
from .dealing import NEW_LABELS, Bins, LabelCodes, Spill, shuffled
from .frequencies import Frequencies
from .json_content import Count, as_declared, parse_json
from .manifest import JOURNAL, MANIFEST, BlockEntry, Catalogue, Manifest, StoreError, check_names
from .row_parts import Place, RowPart, RowSource
from .store_lock import LOCK, sweep, writing
from .streams import MAGIC, open_atomic
from .tensor_file import tensor_file_content
from .unit_rows import scale_to_unit_length

# Fractions of the memory: the bins before they are spilled, and one block (small, because training mixes the rows of
# several blocks).
BUFFERED, BLOCK = 1 / 4, 1 / 64
LARGEST_BLOCK = 16 << 20
SMALLEST_BLOCK = 1 << 18  # smaller blocks are not worth a file
LEAST_MEMORY = 64 * 10**6
# Assumed compression ratio of compressed input.
COMPRESSED = 4
MOST_BINS = 1 << 14
# Number of bins for an input of unknown length; small bins share a block.
UNKNOWN = 1 << 10
SECONDS_PER_JOURNAL = 1.0


@dataclass
class Journal:
    """Progress of a conversion."""

    settings: dict[str, Any]
    bins: Count = 0
    place: Place = field(default_factory=Place)
    rows: Count = 0
    min_index: int = np.iinfo(np.int64).max
    max_index: int = -1
    multilabel: bool = False
    spills: list[str] = field(default_factory=list)
    blocks: list[BlockEntry] = field(default_factory=list)
    dealt: Count = 0  # bins already written as blocks

    def write(self, folder: Path) -> None:
        with open_atomic(folder / JOURNAL) as out:
            out.write(json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> "Journal | None":
        try:
            text = (folder / JOURNAL).read_bytes()
        except FileNotFoundError:
            return None
        try:
            found = as_declared(cls, parse_json(text))
            check_names([*found.spills, *(entry.file for entry in found.blocks)])
            if found.bins > MOST_BINS or found.dealt > found.bins:
                raise ValueError(f"{found.dealt} of {found.bins} bins")
            return found
        except ValueError as error:
            raise StoreError(f"{folder / JOURNAL} is damaged ({error}); delete it to start again") from error


class Conversion:
    """A conversion, from the first row or from where it was interrupted.

    Parameters
    ----------
    folder
        A new or empty folder, or one left by an interrupted conversion of the same rows.
    memory
        Maximum bytes to use, in addition to the program itself.
    append
        Append the rows to the store in the folder.
    blocks
        Number of blocks. Default: chosen from the memory.
    seed
        Seed for the random assignment of rows to bins.
    compression, level
        See `PlaneWriter`.
    """

    def __init__(
        self,
        rows: RowSource,
        folder: str | os.PathLike[str],
        *,
        memory: int,
        append: bool = False,
        blocks: int | None = None,
        seed: int = 0,
        compression: str = "zstd",
        level: int | None = None,
    ):
        if memory < LEAST_MEMORY:
            raise ValueError(f"{memory} bytes of memory are not enough; a conversion needs at least {LEAST_MEMORY}")
        if blocks is not None and not 1 <= blocks <= MOST_BINS:
            raise ValueError(f"blocks must be from 1 to {MOST_BINS}, got {blocks}")
        self._rows, self._folder, self._memory = rows, Path(folder), memory
        self._append, self._wanted, self._seed = append, blocks, seed
        self._writer = PlaneWriter(compression, level)
        self._largest = min(int(memory * BLOCK), LARGEST_BLOCK)
        how = {"blocks": blocks, "seed": seed, "compression": compression, "level": level}
        self._settings = rows.settings() | how | {"generation": 0}
        self._before: BlockStore | None = None
        self._bins, self._text_bytes = Bins(), 0
        # Whether the rows can be read a second time.
        self._again = all("size" in file for file in self._settings["files"])

    def run(self) -> BlockStore:
        """Run the conversion and return the store."""
        self._check_folder()
        with writing(self._folder):
            if self._begin():
                self._work()
            sweep(self._folder, Manifest.read(self._folder).files)
        return BlockStore(self._folder)

    def _work(self) -> None:
        try:
            if self._journal.place != self._rows.end:
                for part in self._rows.parts(self._journal.place):
                    self._deal(part)
                self._spill(self._rows.end)
            self._write_blocks()
            self._commit()
        except Exception:
            # Delete the files of a failed append, unless the new manifest is already in place and names them.
            if self._before is not None and Manifest.read(self._folder) == self._before.manifest:
                sweep(self._folder, self._before.manifest.files)
            raise

    # ---- Beginning

    def _check_folder(self) -> None:
        if self._append:
            Manifest.read(self._folder)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        ours = {MANIFEST, JOURNAL, LOCK}
        if any(self._folder.iterdir()) and not any((self._folder / name).exists() for name in ours):
            raise StoreError(f"{self._folder} is not empty; choose a new folder")

    def _begin(self) -> bool:
        """Resume from the journal, or start. Return False if the conversion was already complete."""
        found = Journal.read(self._folder)
        if (self._folder / MANIFEST).exists():
            before = BlockStore(self._folder)
            generation = before.manifest.generation
            # Interrupted after writing the manifest: the rows are already in the store.
            if self._again and found is not None and found.settings == self._settings | {"generation": generation}:
                return False
            if not self._append:
                raise StoreError(f"{self._folder} is a store already; choose another folder, or append to it")
            self._check_kind(before)
            self._before = before
            # No larger than the existing blocks, so that training still fits the same memory.
            there = max(entry.nnz for entry in before.manifest.blocks) * (4 + before.dtype.itemsize)
            self._largest = min(self._largest, max(there, SMALLEST_BLOCK))
            self._settings["generation"] = generation + 1
        known = self._before.catalogue.labels if self._before else []
        if found is not None and self._can_resume(found):
            self._journal = found
            for spill in found.spills:
                known += Spill(self._folder / spill, found.bins).new_labels
            self._rows.min_index, self._rows.max_index = found.min_index, found.max_index
        else:
            sweep(self._folder, self._before.manifest.files if self._before else ())
            self._journal = Journal(self._settings)
        self._labels = LabelCodes(known)
        return True

    def _check_kind(self, before: BlockStore) -> None:
        if self._rows.dtype != before.dtype:
            raise StoreError(f"{before.path} holds {before.dtype} values, but those to append are {self._rows.dtype}")
        if "normalize" in self._rows.reading and "normalize" not in before.manifest.reading:
            raise StoreError(f"the rows of {before.path} are not scaled to length 1, but those to append would be")
        text, wanted = self._rows.reading.get("text"), before.manifest.reading.get("text")
        if text is not None and text != wanted:
            made = f"from texts with {wanted}" if wanted else "without texts"
            raise StoreError(f"{before.path} was made {made}, but the rows to append are texts with {text}")
        if before.chain.takes_text and self._rows.max_index >= before.n_features:
            raise StoreError(f"{before.path} holds texts with {before.n_features} features; no more can be added")

    def _can_resume(self, found: Journal) -> bool:
        names = {*self._settings, *found.settings}
        different = [name for name in names if found.settings.get(name) != self._settings.get(name)]
        if self._append:  # files left by a different append are useless
            return self._again and not different
        if different:
            raise StoreError(
                f"{self._folder} holds an interrupted conversion with different {', '.join(sorted(different))}; "
                "repeat it with the same settings, or choose another folder"
            )
        if not self._again:
            raise StoreError(
                f"{self._folder} holds an interrupted conversion of a stream, which cannot be resumed; delete it"
            )
        return True

    # ---- Dealing

    def _deal(self, part: RowPart) -> None:
        journal = self._journal
        n = part.indptr.size - 1
        journal.multilabel |= bool((np.diff(part.label_ptr) != 1).any())
        ids = np.arange(n) + journal.rows + self._first_id
        labels, values = self._labels.encode(part.labels), part.values
        if "normalize" in (self._before.manifest.reading if self._before else self._rows.reading):
            values = values.copy()
            scale_to_unit_length(part.indptr, values)
        self._bins.add(Block(ids, part.indptr, part.indices, values, part.label_ptr, labels, 0))
        journal.rows += n
        self._text_bytes += part.text_bytes
        if self._bins.nbytes > self._memory * BUFFERED:
            self._spill(part.end)

    @property
    def _first_id(self) -> int:
        return self._before.manifest.next_id if self._before else 0

    def _choose_bins(self, place: Place) -> int:
        """Choose the number of bins for blocks of the right size, assuming that the rest is like the rows so far."""
        if place == self._rows.end:
            return max(1, -(-self._bins.nbytes // self._largest))
        if not self._again or not self._text_bytes:
            return UNKNOWN
        text = 0
        for file in self._settings["files"]:
            with open(file["name"], "rb") as opened:
                packed = opened.read(6).startswith(tuple(MAGIC))
            text += file["size"] * (COMPRESSED if packed else 1)
        return int(np.clip(text * (self._bins.nbytes / self._text_bytes) // self._largest + 1, 1, MOST_BINS))

    def _spill(self, place: Place) -> None:
        journal = self._journal
        journal.bins = journal.bins or self._wanted or self._choose_bins(place)
        tensors = self._bins.tensors(journal.bins, self._seed)
        new = json.dumps(self._labels.labels[self._labels.spilled :]).encode()
        tensors[NEW_LABELS] = np.frombuffer(new, np.uint8)
        name = f"spill-{len(journal.spills)}.safetensors"
        with open_atomic(self._folder / name) as out:
            out.writelines(tensor_file_content(tensors, {}))
        self._bins.clear()
        self._labels.spilled = len(self._labels.labels)
        journal.spills.append(name)
        journal.place = place
        journal.min_index, journal.max_index = int(self._rows.min_index), int(self._rows.max_index)
        journal.write(self._folder)

    # ---- Blocks

    def _write_blocks(self) -> None:
        journal = self._journal
        spills = [Spill(self._folder / name, journal.bins) for name in journal.spills]
        base = self._rows.index_base
        self._base = (0 if journal.min_index == 0 else 1) if base is None else base
        self._start_counts(max(0, journal.max_index + 1 - self._base))
        for entry in journal.blocks:
            self._count(read_block(self._folder / entry.file, rows=entry.rows, nnz=entry.nnz))
        written = time.monotonic()
        while journal.dealt < journal.bins:
            last = self._last_of_block(spills, journal.dealt)
            for block in self._blocks_of(spills, journal.dealt, last):
                self._count(block)
                name = f"block-{self._settings['generation']}-{len(journal.blocks)}.safetensors"
                journal.blocks.append(write_block(self._folder / name, block, self._writer))
            journal.dealt = last
            # Not after every block: the journal lists all blocks so far, so the total cost would be quadratic.
            if time.monotonic() - written > SECONDS_PER_JOURNAL or last == journal.bins:
                journal.write(self._folder)
                written = time.monotonic()

    def _last_of_block(self, spills: list[Spill], first: int) -> int:
        """Return the end (exclusive) of the bins that share a block with bin `first`."""
        last = first + 1
        if self._wanted:
            return last
        while last < self._journal.bins and sum(spill.size(first, last + 1) for spill in spills) <= self._largest:
            last += 1
        return last

    def _start_counts(self, n_features: int) -> None:
        self._frequencies = Frequencies(n_features)
        self._rows_of_code = np.zeros(len(self._labels.labels), np.int64)
        if self._before is not None:
            catalogue = self._before.catalogue
            self._frequencies = catalogue.frequencies.widened(n_features)
            self._rows_of_code[: catalogue.rows_of_code.size] = catalogue.rows_of_code

    def _count(self, block: Block) -> None:
        self._frequencies = self._frequencies.changed(block.indices[block.values != 0], 1)
        self._rows_of_code += np.bincount(block.labels, minlength=self._rows_of_code.size)

    def _blocks_of(self, spills: list[Spill], first: int, last: int) -> Iterator[Block]:
        """Join the parts of bins `first` to `last` (exclusive) into one block, or several if they are too large."""
        size = sum(spill.size(first, last) for spill in spills)
        pieces = 1 if self._wanted else max(1, -(-size // (2 * self._largest)))
        for piece in range(pieces):
            chosen = []
            for spill in spills:
                block = spill.read(first, last)
                if pieces > 1:
                    mine = shuffled(block.ids, self._seed + 1) % np.uint64(pieces) == piece
                    block = block.take(np.flatnonzero(mine))
                if block.n_rows:
                    chosen.append(block)
            if chosen:
                block = join_blocks(chosen)
                block = block if last == first + 1 else block.take(np.argsort(block.ids))
                if base := self._base:
                    block = replace(block, indices=block.indices - base, n_features=max(0, block.n_features - base))
                yield block

    def _commit(self) -> None:
        journal, before = self._journal, self._before
        if journal.rows == 0:
            names = ", ".join(file["name"] for file in self._settings["files"])
            raise StoreError(f"{names}: no rows found")
        catalogue = Catalogue.of_labels(
            self._labels.labels,
            self._rows_of_code,
            frequencies=self._frequencies,
            removed=before.catalogue.removed if before else np.empty(0, np.int64),
        )
        old, reading = before.manifest if before else None, self._rows.reading
        if "text" not in reading:
            reading = {"index_base": self._base} | reading
        generation = self._settings["generation"]
        Manifest(
            generation=generation,
            rows=journal.rows + (old.rows if old else 0),
            nnz=sum(entry.nnz for entry in journal.blocks) + (old.nnz if old else 0),
            n_features=self._frequencies.n_features,
            next_id=journal.rows + self._first_id,
            reading=old.reading if old else reading,
            value_bytes=self._rows.dtype.itemsize,
            multilabel=journal.multilabel or bool(old and old.multilabel),
            **catalogue.write(self._folder, generation),
            blocks=(*(old.blocks if old else ()), *journal.blocks),
        ).write(self._folder)


def write_block(path: Path, block: Block, writer: PlaneWriter) -> BlockEntry:
    """Write a block atomically and return its manifest entry."""
    with open_atomic(path) as out:
        size, checksum = write_checked(out, tensor_file_content(*block_tensors(block, writer)))
    return BlockEntry(path.name, block.n_rows, int(block.indices.size), size, checksum)
