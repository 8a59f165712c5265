"""The terms that the page explains: a question, a sentence and a picture each, and the terms of scores."""

from __future__ import annotations

from typing import NamedTuple

from cse.app.drawing.sketches import (
    CENTRE,
    DASHED,
    FULL,
    KEY,
    MARK,
    SOFT,
    around,
    arrow,
    bars,
    box,
    dot,
    dots,
    fan,
    joined,
    line,
    path,
    sketch,
    words,
)


class Term(NamedTuple):
    """The question that a "?" asks, the sentence that answers it, and a picture as SVG."""

    question: str
    sentence: str
    picture: str


NEAR = [(27, 26), (62, 24), (40, 56)]  # neighbours of (44, 40) in the pictures of maps
LEFT = box(4, 6, 100, 64) + joined(NEAR, (44, 40)) + dots(NEAR) + dot(44, 40, KEY) + words(54, 85, "vectors")
RIGHT = box(136, 6, 100, 64)
SPREAD, CROWDED = range(0, 360, 45), range(10, 80, 9)
ON_MAP = [(x + 132, y) for x, y in NEAR]

TERMS = {
    "percentile": Term(
        "What is a percentile?",
        "The share of random sentence pairs that are less similar than this pair: 99 % means closer than 99 of 100 "
        "random pairs, in every model alike.",
        sketch(
            path("M10 66C55 66 65 14 95 14S140 66 195 66Z", SOFT), line(10, 66, 230, 66), line(188, 24, 188, 66, MARK),
            words(188, 17, "this pair"), words(95, 82, "random pairs, by their cosine"),
        ),
    ),
    "anisotropy": Term(
        "What is anisotropy?",
        "How much all vectors of a model point the same way, measured as the mean cosine of unrelated sentences: near "
        "0 they spread in all directions, near 1 every pair looks alike.",
        sketch(
            fan(62, 40, 32, SPREAD), fan(152, 62, 56, (18, 28, 38, 48), MARK), words(62, 87, "near 0"),
            words(178, 87, "near 1"),
        ),
    ),
    "denoising": Term(
        "What is denoising?",
        "It subtracts what the template says without any sentence, so that what is left comes from the sentence alone "
        "(PromptBERT, section 4.2).",
        sketch(
            bars(12, 66, (44, 34, 20), 1), bars(96, 66, (42, 6, 16), 1), bars(180, 66, (2, 28, 4), 1),
            words(80, 46, "\N{MINUS SIGN}"), words(164, 46, "="), words(38, 82, "sentence"), words(122, 82, "template"),
            words(205, 82, "what is left"),
        ),
    ),
    "prefix": Term(
        "What is a prefix?",
        "Some trained vectors that every layer of a frozen backbone reads beside the sentence; DCPCSE trains nothing "
        "else.",
        sketch(
            box(6, 22, 228, 42, DASHED), *(box(x, 31, 24, 24, KEY) for x in (16, 46, 76)),
            *(box(x, 31, 24, 24) for x in (112, 142, 172, 202)), words(CENTRE, 15, "every layer, frozen"),
            words(58, 80, "trained"), words(170, 80, "the sentence"),
        ),
    ),
    "attention": Term(
        "What is attention?",
        "How much a token takes from each of the others in a layer: the shares of a head add up to 100 %, and every "
        "layer has several heads.",
        sketch(
            *(line(CENTRE, 20, x, 62, MARK if x == 92 else SOFT) for x in (34, 92, 150, 206)),
            dot(CENTRE, 20, KEY, 6), dots((x, 62) for x in (34, 92, 150, 206)), words(CENTRE, 10, "[CLS]"),
            words(92, 84, "patient"), words(34, 84, "the"),
        ),
    ),
    "prototype": Term(
        "What is a prototype?",
        "The vector of a sentence in a template that affirms or denies it; ConPVP pulls a sentence to the first kind "
        "and pushes it from the second.",
        sketch(
            dot(40, 40, KEY, 6), arrow(112, 40, 54, 40, MARK), dot(CENTRE, 40, FULL, 6),
            line(132, 40, 188, 40, DASHED), dot(202, 40, "", 6), words(40, 64, "affirms"),
            words(CENTRE, 64, "the sentence"), words(202, 64, "denies"),
        ),
    ),
    "[MASK] template": Term(
        "What is a [MASK] template?",
        "A phrase around the sentence with one word left out, [MASK]: the vector that the model makes there stands for "
        "the sentence.",
        sketch(
            box(6, 16, 228, 30), words(88, 35, "“your sentence” means"), box(172, 21, 56, 20, MARK),
            words(200, 35, "[MASK]"), arrow(200, 44, 200, 70, MARK), words(200, 84, "the vector"),
        ),
    ),
    "trustworthiness": Term(
        "What is trustworthiness?",
        "A score that falls with every neighbour on the map that is far off among the vectors, by its rank there: 1 "
        "means that the map invents none.",
        sketch(
            LEFT, RIGHT, dot(92, 60, ""), joined([*ON_MAP, (200, 48)], (176, 40)), dots(ON_MAP), dot(200, 48, ""),
            dot(176, 40, KEY), words(186, 85, "map: one invented"),
        ),
    ),
    "continuity": Term(
        "What is continuity?",
        "A score that falls with every neighbour among the vectors that is far off on the map, by its rank there: 1 "
        "means that the map separates none.",
        sketch(
            LEFT, RIGHT, joined(ON_MAP[:2], (176, 40)), dots(ON_MAP[:2]), dot(176, 40, KEY), dot(222, 58),
            words(184, 85, "map: one separated"),
        ),
    ),
    "label neighbours": Term(
        "What are neighbours of the same label?",
        "The share of the nearest texts that carry the text's own label: at 100 % every text has only its own kind "
        "around it.",
        sketch(
            dot(CENTRE, 38, DASHED, 34), dots([(100, 28), (140, 30), (106, 56), (128, 16)]), dot(142, 54, ""),
            dot(CENTRE, 38, KEY, 6), dots([(50, 24), (190, 20), (60, 60), (196, 58)], ""),
            words(CENTRE, 86, "four of five have its label"),
        ),
    ),
    "grouping": Term(
        "What is grouping?",
        "Whether texts on one subject come together: the share of a text's five nearest texts that have its label, on "
        "texts that nothing was fitted on.",
        sketch(
            dot(62, 38, DASHED, 34), dots([(44, 28), (60, 18), (80, 30), (46, 50), (74, 52)], KEY),
            dot(178, 38, DASHED, 34), dots([(160, 28), (178, 18), (196, 30), (164, 50), (194, 54)], ""),
            words(62, 86, "one label"), words(178, 86, "another"),
        ),
    ),
    "finding": Term(
        "What is finding?",
        "Whether a text is found again by a short form of it, such as every second word or its title: how often it is "
        "the first of all held-out texts and 2,000 others.",
        sketch(
            box(8, 26, 92, 24, KEY), words(54, 42, "a short form"), arrow(104, 38, 134, 38), box(138, 6, 94, 18, KEY),
            box(138, 30, 94, 18), box(138, 54, 94, 18), words(185, 19, "its text"), words(185, 86, "first of all"),
        ),
    ),
    "dial": Term(
        "What is the dial?",
        "A number by which an adapted model stresses what texts have in common (to the right: better groups) or what "
        "tells them apart (to the left: the right text is found more often).",
        sketch(
            line(20, 60, 220, 60), dot(120, 60, KEY, 6), path("M20 20C80 14 160 26 220 44", MARK),
            path("M20 44C80 34 160 18 220 14"), words(40, 80, "finding"), words(200, 80, "grouping"),
        ),
    ),
    "purity": Term(
        "What is purity?",
        "The share of texts whose label is the most frequent one of their group; 100 % means that no group mixes "
        "labels.",
        sketch(
            dot(62, 38, DASHED, 34), dots([(44, 28), (60, 18), (80, 30), (46, 50), (64, 40)], KEY), dot(76, 56, ""),
            dot(178, 38, DASHED, 34), dots([(160, 28), (178, 18), (196, 30), (164, 50), (180, 40)], ""),
            dot(194, 54, KEY), words(62, 86, "5 of 6"), words(178, 86, "5 of 6"),
        ),
    ),
    "NMI": Term(
        "What is NMI?",
        "Normalised mutual information, how much the groups say about the labels: 0 is nothing, 100 means that each "
        "label is one group.",
        sketch(
            words(26, 32, "labels"), words(26, 66, "groups"), box(54, 16, 60, 24, KEY), box(116, 16, 60, 24),
            box(178, 16, 56, 24, FULL), box(54, 50, 52, 24, KEY), box(108, 50, 68, 24), box(178, 50, 56, 24, FULL),
        ),
    ),
    "nDCG": Term(
        "What is nDCG?",
        "A score of a ranked list from 0 to 100: relevant texts count more the earlier they come, and 100 means that "
        "all relevant ones come first.",
        sketch(
            *(box(20, 6 + 13 * place, 84, 9, KEY if place in (0, 1, 2) else "") for place in range(5)),
            *(box(136, 6 + 13 * place, 84, 9, KEY if place in (1, 3, 4) else "") for place in range(5)),
            words(62, 86, "100"), words(178, 86, "68"),
        ),
    ),
    "Spearman": Term(
        "What is Spearman’s correlation?",
        "A correlation of ranks from \N{MINUS SIGN}100 to 100: 100 means that the model orders all pairs by similarity "
        "exactly as people do.",
        sketch(
            line(70, 10, 150, 10), line(70, 30, 150, 50, MARK), line(70, 50, 150, 30, MARK), line(70, 70, 150, 70),
            dots((x, y) for x in (70, 150) for y in (10, 30, 50, 70)), words(70, 87, "people"),
            words(150, 87, "model"), words(205, 45, "80"),
        ),
    ),
    "STS": Term(
        "What is STS?",
        "Semantic textual similarity: people grade how alike two sentences are, and a model scores by ordering pairs "
        "as they do.",
        sketch(
            box(8, 8, 104, 22), words(60, 23, "A dog runs."), box(128, 8, 104, 22), words(180, 23, "A dog is running."),
            line(20, 60, 220, 60), line(20, 55, 20, 65), line(220, 55, 220, 65), dot(204, 60, KEY, 6),
            words(36, 82, "0 unrelated"), words(204, 82, "5 the same"),
        ),
    ),
    "alignment": Term(
        "What is alignment?",
        "The mean squared distance between the vectors of sentences that mean the same; lower is better.",
        sketch(
            dot(CENTRE, 38, "", 32), line(*around(CENTRE, 38, 32, (35,))[0], *around(CENTRE, 38, 32, (60,))[0], MARK),
            dots(around(CENTRE, 38, 32, (35, 60)), KEY), dots(around(CENTRE, 38, 32, (150, 200, 290)), FULL),
            words(CENTRE, 86, "a pair that means the same"),
        ),
    ),
    "uniformity": Term(
        "What is uniformity?",
        "How evenly the vectors fill the sphere of all directions; lower is more even, which keeps different meanings "
        "apart.",
        sketch(
            dot(62, 38, "", 30), dots(around(62, 38, 30, SPREAD), KEY), dot(178, 38, "", 30),
            dots(around(178, 38, 30, CROWDED)), words(62, 86, "low"), words(178, 86, "high"),
        ),
    ),
    "significance": Term(
        "What is a significant difference?",
        "A difference that is unlikely to be chance: the 95 % interval of the difference does not contain zero.",
        sketch(
            line(84, 6, 84, 72, DASHED), words(84, 86, "0"), line(50, 24, 116, 24), dot(83, 24),
            words(178, 28, "chance"), line(110, 54, 176, 54, MARK), dot(143, 54, KEY), words(210, 58, "significant"),
        ),
    ),
}  # fmt: skip
MEASURES = {  # name and unit of each score
    "spearman": ("Spearman", "× 100"), "pearson": ("Pearson", "× 100"), "subset_mean": ("mean of subsets", "× 100"),
    "accuracy": ("accuracy", "%"), "f1": ("F1", "%"), "neighbours": ("neighbours", "%"), "purity": ("purity", "%"),
    "nmi": ("NMI", "× 100"), "ndcg@10": ("nDCG@10", "× 100"), "mrr@10": ("MRR@10", "× 100"),
    "recall@10": ("recall@10", "%"), "recall@100": ("recall@100", "%"), "anisotropy": ("anisotropy", "cosine"),
    "separation": ("separation", "cosine"), "alignment": ("alignment", "squared distance"),
    "uniformity": ("uniformity", "logarithm"), "K=0": ("K=0", "Spearman × 100"), "K=100": ("K=100", "Spearman × 100"),
}  # fmt: skip
# The terms of a score, by its name in results.
OF_SCORES = {
    "spearman": ("STS", "Spearman"), "K=0": ("STS",), "neighbours": ("label neighbours",), "purity": ("purity",),
    "nmi": ("NMI",), "ndcg@10": ("nDCG",), "anisotropy": ("anisotropy",), "alignment": ("alignment",),
    "uniformity": ("uniformity",),
}  # fmt: skip
