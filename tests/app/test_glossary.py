"""The terms of the page: each is explained in one sentence and one picture, and shown somewhere."""

import ast
import importlib
import re
from xml.etree import ElementTree

import pytest
from conftest import ROOT

from cse.app.drawing.glossary import of_scores, score_term, term
from cse.app.drawing.sketches import HEIGHT, WIDTH
from cse.app.drawing.terms import MEASURES, OF_SCORES, TERMS

HERE = {"cse.app.drawing.terms", "cse.app.drawing.glossary"}  # where terms are made, not shown
SHOWING = {"term", "terms", "question"}


def named() -> set[str]:
    """The names that the app's modules give to functions that show terms, and their constant lists of terms."""
    found: set[str] = set()
    for path in (ROOT / "cse" / "app").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if name in HERE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in SHOWING:
                given = node.args[:1] if ast.unparse(node.func) == "term" else node.args
                found |= {each.value for each in given if isinstance(each, ast.Constant)}
            if isinstance(node, ast.keyword) and node.arg == "words" and isinstance(node.value, ast.List):
                found |= {each.value for each in node.value.elts if isinstance(each, ast.Constant)}
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPLAINED":
                found |= set(importlib.import_module(name).EXPLAINED)
    return found


def test_every_term_that_is_shown_is_explained_and_none_is_left_over() -> None:
    scores = {name for each in OF_SCORES.values() for name in each}
    assert named() | scores == set(TERMS)
    assert named() - set(TERMS) == scores - set(TERMS) == set()
    assert set(OF_SCORES) <= set(MEASURES)
    assert {"anisotropy", "denoising", "trustworthiness", "nDCG", "prefix", "purity", "NMI", "percentile"} <= set(TERMS)
    assert {"Spearman", "alignment", "uniformity", "[MASK] template", "prototype", "label neighbours"} <= set(TERMS)


@pytest.mark.parametrize("name", TERMS)
def test_a_term_is_one_question_one_sentence_and_a_picture_without_a_script(name: str) -> None:
    found = TERMS[name]
    assert re.fullmatch(r"What (is|are) [^.?]+\?", found.question)
    assert re.search(r"[.!?](?=\s|$)", found.sentence.replace("section 4.2", "")).end() == len(
        found.sentence.replace("section 4.2", "")
    )
    assert found.sentence[0].isupper()
    assert 40 < len(found.sentence) <= 180
    drawn = ElementTree.fromstring(found.picture)
    assert {each.tag for each in drawn.iter()} <= {"svg", "path", "rect", "circle", "text"}
    assert drawn.attrib == {"class": "cse-sketch", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "aria-hidden": "true"}
    given = {key for each in drawn.iter() for key in each.attrib}
    assert given <= {"class", "viewBox", "aria-hidden", "cx", "cy", "r", "x", "y", "width", "height", "rx", "d"}
    assert 2 < len(drawn) < 40
    for each in drawn:  # within the picture
        right, below = (
            float(each.get(one, each.get(other, 0))) + float(each.get(size, 0))
            for one, other, size in (("x", "cx", "width"), ("y", "cy", "height"))
        )
        assert 0 <= right <= WIDTH
        assert 0 <= below <= HEIGHT


def test_a_score_has_the_terms_that_explain_it() -> None:
    assert of_scores(["spearman", "K=0", "nmi", "spearman", "accuracy"]) == ("STS", "Spearman", "NMI")
    assert score_term("ndcg@10") == term("nDCG", "nDCG@10 (× 100)")
    assert score_term("spearman") == term("Spearman", "Spearman (× 100)")
    assert score_term("accuracy") == "accuracy (%)"
    assert score_term("<from a link>") == "&lt;from a link&gt;"
