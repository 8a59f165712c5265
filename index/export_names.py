"""The forms that an index is exported in; the heavy work is in `index.export`."""

from __future__ import annotations

INDEX_FORMS = ("datasets", "parquet", "projector")
