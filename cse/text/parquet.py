"""Rows of .parquet files, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 256  # read at once


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, cells by column. Texts that repeat are stored once, and rows are made one at a time.

    Raises what pyarrow raises for a file that cannot be read.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        names = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
    with ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(batch_size=ROWS):
            for row in range(batch.num_rows):
                yield {name: batch.column(name)[row].as_py() for name in batch.schema.names}


def unpacked_bytes(path: Path) -> int:
    """Return the size of a file's columns without compression, as the file says. Raises ValueError if it is damaged."""
    from pyarrow.parquet import read_metadata

    try:
        found = read_metadata(path)
    except (ValueError, OSError, NotImplementedError) as error:
        raise ValueError(f"cannot read {str(path)!r} ({str(error).splitlines()[0][:160]}); write it again") from error
    return sum(found.row_group(group).total_byte_size for group in range(found.num_row_groups))
