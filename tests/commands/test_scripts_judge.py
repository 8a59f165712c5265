"""`scripts.judge`: votes from stdin, kept one by one, a verdict in one sentence, scores of labels, bad input."""

import json
from pathlib import Path

import pytest
from command_line import refused, run
from typer.testing import Result

import cse
from cse.evaluation.clustering import label_scores

TOPICS = {"pets": ["dog", "cat"], "home": ["kitchen", "guitar"], "sky": ["rain", "sun"]}
TEXTS = [
    (topic, f"the {size} {noun} {more}")
    for topic, nouns in TOPICS.items()
    for noun in nouns
    for size in ("small", "big", "red", "sad")
    for more in ("is here", "was in the park")
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "texts.csv"
    file.write_text("topic,text\n" + "".join(f"{topic},{text}\n" for topic, text in TEXTS))
    return file


def judge(*arguments: object, votes: str = "") -> Result:
    return run("judge", *arguments, stdin=votes)


def pair(folder: Path) -> tuple[object, ...]:
    return (folder, folder, "--pooling", "mean", "--pooling", "cls")


def test_votes_are_asked_blind_kept_and_continued(bert_folder, table, tmp_path):
    options = (*pair(bert_folder), "--data", table, "--votes", 6, "--json", tmp_path / "votes.json")
    first = judge(*options, votes="A\nb\nmaybe\nskip\nq\n")
    assert first.exit_code == 0, first.output
    assert "'maybe' is no answer" in first.stderr
    assert "2 of 6 votes; the same command continues" in first.stderr
    for blind in ("start", "result", "mean", "cls"):
        assert blind not in first.stderr[first.stderr.index("1 of 6") : first.stderr.index("2 of 6 votes")].lower()
    kept = json.loads((tmp_path / "votes.json").read_text())
    assert [vote["vote"] for vote in kept["votes"]][2:] == ["skip"]
    for answer, vote in zip("ab", kept["votes"], strict=False):  # the list shown as A is `first`'s
        assert (vote["vote"] == vote["first"]) == (answer == "a")
    second = judge(*options, votes="s\nsame\nA\nA\nA\n")
    assert second.exit_code == 0, second.output
    judgement = json.loads((tmp_path / "votes.json").read_text())
    assert judgement["votes"][:3] == kept["votes"]
    assert len({vote["text"] for vote in judgement["votes"]}) == 7
    assert judgement["verdict"]["finished"]
    assert second.stdout.splitlines()[0] == judgement["verdict"]["sentence"]
    assert judge(*options).stdout == second.stdout  # nothing is left to ask
    poolings = [(judgement[side]["pooling"], judgement[side]["fingerprint"]) for side in ("start", "result")]
    assert poolings == [(pooling, cse.load(str(bert_folder), pooling).fingerprint) for pooling in ("mean", "cls")]
    other = (bert_folder, bert_folder, "--pooling", "mean", "--data", table, "--json", tmp_path / "votes.json")
    refused(judge(*other), 4, "votes with result", "give another --json, or pass --overwrite")


def test_votes_name_the_rows_and_texts_of_the_source(bert_folder, tmp_path):
    rows = [{"id": number, "m": {"text": f" {text} " if number % 3 else ""}} for number, (_, text) in enumerate(TEXTS)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--data", tmp_path / "a.jsonl", "--column", "m.text", "--votes", 2, "--json", tmp_path / "v.json")
    done = judge(*pair(bert_folder), *words, votes="A\nb\n")
    assert done.exit_code == 0, done.output
    assert "a.jsonl: " in done.stderr
    for vote in json.loads((tmp_path / "v.json").read_text())["votes"]:
        numbers = [vote["row"], *vote["start_rows"], *vote["result_rows"]]
        assert [rows[number - 1]["m"]["text"] for number in numbers] == [vote["text"], *vote["start"], *vote["result"]]


def test_labels_give_scores_at_once_and_can_vote(bert_folder, table, tmp_path):
    scored = judge(*pair(bert_folder), "--data", table, "--labels", "topic", "--votes", 0)
    assert scored.exit_code == 0, scored.output
    header, *lines = scored.stdout.splitlines()
    assert header.split("\t")[:5] == ["model", "neighbours", "purity", "nmi", "ndcg@10"]
    for line, pooling in zip(lines, ("mean", "cls"), strict=True):
        vectors = cse.load(str(bert_folder), pooling).encode([text for _, text in TEXTS])
        expected = label_scores(vectors, [topic for topic, _ in TEXTS])
        assert [float(cell) for cell in line.split("\t")[1:]] == pytest.approx(list(expected.values()), abs=0.01)
    output = tmp_path / "s.json"
    done = judge(*pair(bert_folder), "--data", table, "--simulate", "topic", "--votes", 12, "--json", output)
    assert done.exit_code == 0, done.output
    judgement = json.loads(output.read_text())
    assert judgement["simulated"]
    assert done.stdout.splitlines()[3] == judgement["verdict"]["sentence"]
    topics = {text: topic for topic, text in TEXTS}
    for vote in judgement["votes"]:
        start, result = (sum(topics[row] == topics[vote["text"]] for row in vote[s]) for s in ("start", "result"))
        assert vote["vote"] == ("same" if start == result else "result" if result > start else "start")


def test_the_votes_on_a_run_are_kept_next_to_it_for_each_comparison(bert_folder, table, tmp_path):
    run = tmp_path / "run"
    run.symlink_to(bert_folder)
    for pooling in ("cls", "first-last"):
        options = ("--pooling", "mean", "--pooling", pooling, "--data", table, "--votes", 2)
        for _ in range(2):
            assert judge(bert_folder, run, *options, votes="A\n").exit_code == 0
    kept = [json.loads(file.read_text()) for file in tmp_path.glob("run.judge-*.json")]
    assert sorted(judgement["result"]["pooling"] for judgement in kept) == ["cls", "first-last"]
    assert [len(judgement["votes"]) for judgement in kept] == [2, 2]


def test_equal_models_have_nothing_to_ask(bert_folder, table):
    done = judge(bert_folder, bert_folder, "--pooling", "mean", "--data", table, votes="A\n" * 30)
    assert done.exit_code == 0, done.output
    assert done.stdout == "not distinguishable: both models have the same neighbours for all 48 texts\n"


def test_earlier_votes_stay_until_the_first_new_one_and_overwrite_then_drops_them(bert_folder, table, tmp_path):
    votes = tmp_path / "votes.json"
    options = ("--data", table, "--json", votes, "--overwrite")
    assert judge(*pair(bert_folder), *options, "--votes", 3, votes="A\nB\nA\n").exit_code == 0
    kept = votes.read_bytes()
    refused(judge(*pair(bert_folder), *options, votes=""), 3, "no vote was given")
    refused(judge(*pair(bert_folder), *options, "--labels", "topic", votes="q\n"), 3, "no vote was given")
    assert judge(bert_folder, bert_folder, "--pooling", "mean", *options).exit_code == 0  # nothing to ask
    assert votes.read_bytes() == kept
    assert judge(*pair(bert_folder), *options, "--votes", 2, votes="s\nq\n").exit_code == 0
    assert [vote["vote"] for vote in json.loads(votes.read_text())["votes"]] == ["same"]


def test_a_file_of_something_else_is_refused_even_to_overwrite(bert_folder, table, tmp_path):
    output = tmp_path / "mine.json"
    output.write_text("{}")
    for option in ((), ("--overwrite", "--labels", "topic", "--votes", 0)):
        done = judge(*pair(bert_folder), "--data", table, "--json", output, *option, votes="A\n")
        refused(done, 4, f"{output}: holds no votes that can be read", "give another --json")
        assert "--overwrite" not in done.stderr
    assert output.read_text() == "{}"


def test_a_file_that_cannot_be_written_is_told_before_a_vote_is_given_and_none_is_left(bert_folder, table, tmp_path):
    (tmp_path / "file").write_text("")
    done = judge(*pair(bert_folder), "--data", table, "--json", tmp_path / "file" / "v.json", votes="A\n")
    refused(done, 3, "v.json: cannot be written")
    assert "Which texts are closer" not in done.stderr
    refused(judge(*pair(bert_folder), "--data", table, "--json", tmp_path / "v.json"), 3, "no vote was given")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "texts.csv"]
    done = judge(bert_folder, bert_folder, "--pooling", "mean", "--data", table, "--json", tmp_path / "v.json")
    assert json.loads((tmp_path / "v.json").read_text())["votes"] == []
    assert done.exit_code == 0


def test_text_that_cannot_be_compared_is_refused(bert_folder, tmp_path):
    for content, words in (("a dog\n" * 30, "all its texts are the same"), ("a dog\n", "only 1 text in it")):
        (tmp_path / "few.txt").write_text(content)
        refused(judge(*pair(bert_folder), "--data", tmp_path / "few.txt", votes="A\n" * 30), 3, words)


def test_wrong_options_are_refused(bert_folder, table, tmp_path):
    models = pair(bert_folder)
    refused(judge(*models, "--data", table, "--column", "words"), 3, "no column 'words'; it has topic, text")
    refused(judge(bert_folder, "nothing/here", "--data", table), 4, "no model 'nothing/here'")
    refused(judge(*models, "--data", table, "--votes", 0), 2)
    own = tmp_path / "own.csv"
    own.write_text("topic,text\n" + "".join(f"{number},{text}\n" for number, (_, text) in enumerate(TEXTS)))
    refused(judge(*models, "--data", own, "--simulate", "topic"), 3, "has a label of its own")
