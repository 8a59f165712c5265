"""Find the sentences of an index that are most similar to a query."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from cse.commands import cli
from cse.errors import command_line

if TYPE_CHECKING:
    from cse.encoder.encoder import Encoder
    from index.manifest import Manifest
    from index.stores import Hit, Index

SHOWN_CHARACTERS, FIELD_CHARACTERS = 300, 40  # of a hit's text, and of a cell of another column
SHOW_HELP = "Columns to show with each text, such as id,label; in --json the fields."
WHERE_HELP = "Search only rows for which this is true: label = 'billing' and price > 10; Milvus: label == \"billing\"."
EXPAND_HELP = (
    "Mix the query half and half with its K nearest sentences (0: off). Default: as build_index --smooth set it."
)
PROBE_HELP = "Cells of an IVF index to search, or candidates of HNSW; more find more. Default: as build_index chose."


def main(
    index: str = typer.Argument(..., metavar="INDEX_DIR", help="Folder of build-index, or index on the hub."),
    query: str | None = typer.Argument(
        None, help="A sentence; - reads one a line of standard input.", show_default=False
    ),
    store: str | None = cli.option("Instead of INDEX_DIR: milvus://HOST:PORT/COLLECTION of build-index."),
    k: int = cli.option("Number of answers.", "-k", default=5, min=1),
    model: str | None = cli.model_option("Default: the model that built the index; others are refused."),
    pooling: cli.Pooling = None,
    family: cli.Family = None,
    backend: cli.Backend = "auto",
    expand: int | None = cli.option(EXPAND_HELP, min=0, show_default=False),
    probe: int | None = cli.option(PROBE_HELP, min=1, show_default=False),
    show: str | None = cli.option(SHOW_HELP, metavar="COLUMNS"),
    where: str | None = cli.option(WHERE_HELP, metavar="CONDITION"),
    verify: bool = cli.flag("Verify the checksums of a large index again."),
    json_output: bool = cli.flag("Print a list of row, score, text and fields; of query and hits for -."),
) -> None:
    """Print the best answers of an index to a query: rank, cosine, shown columns, text.

    Example: cse search indexes/demo "A man is playing a guitar." -k 5

    Example: cse search indexes/tickets "Where is my parcel?" --show id,label --where "label = 'billing'"

    Example: cse search indexes/demo - --json < queries.txt

    Example: cse search --store milvus://127.0.0.1:19530/demo "A man is playing a guitar."
    """
    from cse.models.names import resolve_recorded
    from index.stores import location_of, manifest_at, open_at, store_of

    if (query is None) == (store is None):
        raise typer.BadParameter("give INDEX_DIR and QUERY, or --store and QUERY")
    name, sentence = (index, query or "") if store is None else (store, index)
    if not sentence.strip():
        raise ValueError("the query is blank; give a sentence")
    queries = cli.stdin_sentences() if sentence == cli.STDIN else [sentence]
    location = location_of(name)
    kind = store_of(location)
    folders_only = {"--expand": expand and not kind.on_disk, "--verify": verify and not kind.on_disk}
    if flag := next((flag for flag, unknown in folders_only.items() if unknown), None):
        raise typer.BadParameter(f"{flag} is for indexes in folders; leave it out")
    location = kind.downloaded(location)
    manifest = manifest_at(location)
    reference = resolve_recorded(manifest, model, pooling, family)

    from cse.models.loading import open_model

    encoder = open_model(reference, backend=backend)
    opened = open_at(location, encoder.fingerprint, model=encoder.name, verify=verify)
    shown = None if show is None else _shown(opened, show)
    among, count = None, len(opened)
    if where is not None:
        among = opened.where(where)
        count = len(among)
        nothing = f"no row meets {where!r}; the columns are {', '.join(map(repr, opened.columns))}"
        cli.log(f"searched {count:,} of {len(opened):,} rows" if count else nothing)
    _note_prompt(encoder, manifest, name)
    vectors = encoder.encode(queries, prompt=manifest.query_prompt, normalize_embeddings=False, show_progress_bar=False)
    answers = [
        opened.hits(vector, k, among=among, expand=expand, probe=probe, quiet=True) if count else []
        for vector in vectors
    ]
    if note := opened.shortfall(min(map(len, answers)), min(k, count), probe):
        cli.log(cli.with_flags(note, app))
    objects = [[_object(hit, shown) for hit in hits] for hits in answers]
    if json_output:
        several = [{"query": query, "hits": hits} for query, hits in zip(queries, objects, strict=True)]
        cli.print_json(several if sentence == cli.STDIN else objects[0])
        return
    for query, hits in zip(queries, answers, strict=True):
        if sentence == cli.STDIN:
            typer.echo(cli.shortened(query, SHOWN_CHARACTERS))
        for hit in hits:
            cells = [_cell(hit.fields.get(name)) for name in shown or []]
            typer.echo(
                "  ".join([f"{hit.rank:>3}", f"{hit.score:.4f}", *cells, cli.shortened(hit.text, SHOWN_CHARACTERS)])
            )


def _note_prompt(encoder: Encoder, manifest: Manifest, name: str) -> None:
    """Log the prompt of queries, or that the index was built without the one that the model has."""
    prompts = {manifest.query_prompt, manifest.document_prompt}
    if note := encoder.prompt_note("queries", manifest.query_prompt):
        cli.log(note)
    elif prompts == {None} != {encoder.query_prompt, encoder.document_prompt}:
        cli.log(
            f"{name}: built without the model's prompts, so the query has none; {command_line('build_index')} uses them"
        )


def _shown(index: Index, show: str) -> list[str]:
    """The columns that `show` lists, without that of the texts. Raises ValueError for one that is not there."""
    others = index.columns[1:]
    names = [show] if show in index.columns else [name.strip() for name in next(csv.reader([show]), [])]
    if unknown := next((name for name in names if name not in index.columns), None):
        columns = f"the columns {', '.join(map(repr, others))}" if others else "no columns but the texts"
        raise ValueError(f"no column {unknown!r} to `show`; the index has {columns}")
    return [name for name in names if name in others]


def _cell(value: Any) -> str:
    """A cell on a line of text: a text as it is, other values as JSON."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cli.shortened(text, FIELD_CHARACTERS)


def _object(hit: Hit, shown: Sequence[str] | None) -> dict[str, Any]:
    """A hit as JSON: the row as its corpus counts it, and the corpus if there are several."""
    fields = hit.fields if shown is None else {name: hit.fields.get(name) for name in shown}
    value = {"row": hit.row, "score": hit.score, "text": hit.text, "fields": fields}
    return value if hit.corpus is None else {**value, "corpus": hit.corpus}


app = cli.command(main)
