"""All readers by name."""

from file_readers import CHECKPOINT, MODEL, SHARDS, STORE
from text_readers import CSV, JSONL, PARQUET, SVMLIGHT, XMC

READERS = {reader.name: reader for reader in (SVMLIGHT, XMC, CSV, JSONL, PARQUET, MODEL, SHARDS, STORE, CHECKPOINT)}
