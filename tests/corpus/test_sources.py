"""A name of a text means one of three kinds of source."""

from pathlib import Path

import pytest

from cse.corpus.sources import HubDataset, Source, Table, TextFile, source_of


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.txt", TextFile("a.txt")),
        ("no/such/a.TXT.gz", TextFile("no/such/a.TXT.gz")),
        ("notes.md", TextFile("notes.md")),
        ("corpus", TextFile("corpus")),
        ("no/such/a.CSV", Table("no/such/a.CSV", ".csv")),
        ("a.tsv.gz", Table("a.tsv.gz", ".tsv")),
        ("a.jsonl.xz", Table("a.jsonl.xz", ".jsonl")),
        ("a.parquet", Table("a.parquet", ".parquet")),
        ("somebody/sentences", HubDataset("somebody/sentences")),
        ("somebody/v1.0", HubDataset("somebody/v1.0")),
    ],
)
def test_a_name_means_a_text_file_a_table_or_a_hub_dataset(name: str, source: Source) -> None:
    assert source_of(name) == source_of(Path(name)) == source


@pytest.mark.parametrize("name", ["a.xlsx", "folder/a.XLS", "a.ods"])
def test_a_workbook_is_refused_with_the_cure(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: workbooks are not read; save the sheet as .csv in UTF-8"):
        source_of(name)


def test_a_file_that_exists_is_not_a_hub_dataset(tmp_path: Path) -> None:
    assert source_of(tmp_path / "notes.md") == HubDataset(str(tmp_path / "notes.md"))
    (tmp_path / "notes.md").write_text("A sentence.")
    assert source_of(tmp_path / "notes.md") == TextFile(str(tmp_path / "notes.md"))
