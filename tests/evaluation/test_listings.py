"""Tables of settings come from the project's constants, and the overview knows every table and what it needs."""

from pathlib import Path

from command_line import refused, run

import cse
from cse.evaluation.published import ROWS
from cse.evaluation.reproduction import LISTINGS, WORD_SENTENCES, overview, state


def cells(paper: str, table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in LISTINGS[paper, table]()[2:]]


def test_dcpcses_tables_are_the_papers() -> None:
    learned = {(row[0], row[1]): row[2:] for row in cells("dcpcse", "3")}
    assert learned["bert-base", "unsupervised"] == ["16", "294,912", "590,592"]
    assert learned["bert-large", "supervised"] == ["12", "589,824", "1,049,600"]
    assert learned["roberta-base", "supervised"] == ["10", "184,320", "590,592"]
    settings = {(row[0], row[1]): row[2:] for row in cells("dcpcse", "4")}
    assert settings["roberta-large", "unsupervised"] == ["64", "0.01", "1", "125", "10", "0.1"]
    assert settings["bert-base", "supervised"] == ["256", "0.005", "10", "125", "12", ""]
    assert len(settings) == len(learned) == 8


def test_promptberts_and_conpvps_settings_are_listed() -> None:
    unsupervised, supervised = [["256", rate, "1"] for rate in ("1e-05", "3e-05", "1e-05")], ["512", "5e-05", "3"]
    assert [row[2:5] for row in cells("promptbert", "14")] == [*unsupervised, supervised, supervised]
    assert [row[2:4] for row in cells("conpvp", "2")] == [
        ["128", "3e-05"], ["128", "1e-05"], ["128", "1e-05"], ["256", "1e-05"],
    ]  # fmt: skip
    assert cells("promptbert", "13")[0][2] == (
        '`This sentence of "[X]" means [MASK].`, `This sentence : "[X]" means [MASK].`'
    )
    assert [len(row[1].split()) for row in cells("promptbert", "11")] == [36, 36]
    assert len(cells("conpvp", "1")) == 9 + 8


def test_the_overview_has_every_table_with_its_state() -> None:
    known = [line.split()[:2] for line in overview()]
    assert [name for paper, name in known if paper == "promptbert"] == [*map(str, range(1, 16)), "figure-1", "figure-2"]
    assert [name for paper, name in known if paper == "dcpcse"] == ["1", "2", "3", "4", "figure-1", "figure-2"]
    assert [name for paper, name in known if paper == "conpvp"] == [
        *map(str, range(1, 7)), *(f"figure-{number}" for number in range(1, 8)),
    ]  # fmt: skip
    assert {(row.paper, row.table) for row in ROWS} <= {tuple(line) for line in known}
    assert state("promptbert", "12") == "copied: needs BERT pretrained anew; pretrain makes small ones"
    assert state("promptbert", "6") == (
        "runs here with --backbone bundled; needs bert-base-uncased, bert-large-uncased, roberta-base, sts, "
        "--train-data, --triplets; 1 of 6 rows copied"
    )


def test_the_command_prints_the_list_and_listings_without_data() -> None:
    assert run("reproduce", "--list").stdout.splitlines() == overview()
    assert run("reproduce", "dcpcse", "4").stdout.splitlines() == LISTINGS["dcpcse", "4"]()
    refused(run("reproduce", "dcpcse", "1"), 2, "--data and --output")
    refused(run("reproduce", "dcpcse", "99"), 3, "no table '99'; choose from 1, 2, 3, 4, figure-1, figure-2")
    refused(run("reproduce", "nopaper", "1"), 3, "unknown paper 'nopaper'", "conpvp")
    refused(run("reproduce", "conpvp", "figure-2"), 3, "a drawing of the method")


def test_table_7_has_the_words_of_its_sentences_before_and_after_denoising(bert_folder: Path) -> None:
    lines = run("reproduce", "promptbert", "7", "--backbone", bert_folder).stdout.splitlines()
    encoder = cse.load(str(bert_folder), "prompt")
    assert len(lines) == 2 + 4
    for line, sentence in zip(lines[2:], WORD_SENTENCES, strict=True):
        words = [" ".join(token for token, _ in encoder.top_tokens(sentence, 5, denoise)) for denoise in (False, True)]
        assert line == f"| {sentence} | {words[0]} | {words[1]} |"
    planned = run("reproduce", "promptbert", "7", "--backbone", bert_folder, "--dry-run").stdout.splitlines()
    assert planned[0].endswith(f"--model {bert_folder} --pooling prompt 'i am sad.' --no-denoise")
    refused(run("reproduce", "promptbert", "7", "--backbone", "promptbert"), 4, "promptbert is a trained checkpoint")
