"""Methods are values, presets are the papers' rows, JSON brings them back."""

import json

import pytest

from cse.files.writing import digest
from cse.methods.catalogue import METHODS, SUPERVISED, UNTRAINED
from cse.methods.method import Pooling, When
from cse.methods.presets import preset
from cse.methods.settings import from_json, identity, to_json
from cse.methods.templates import MEANS_ROBERTA

ALL = [(name, False) for name in METHODS] + [(name, True) for name in SUPERVISED]


@pytest.mark.parametrize("method", [*METHODS.values(), *SUPERVISED.values(), *UNTRAINED.values()], ids=lambda m: m.name)
def test_a_method_comes_back_from_json(method):
    assert from_json(json.loads(json.dumps(to_json(method)))) == method


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (METHODS["simcse"], "51f0a109d6d3"), (METHODS["promptbert"], "bfbe2742bd66"),
        (METHODS["dcpcse"], "7ff416f91b47"), (METHODS["conpvp"], "ba4c36ca5d0b"),
        (SUPERVISED["dcpcse"], "b4add6aa0009"), (UNTRAINED["prompt-denoised"], "acc06a0927d4"),
    ],
)  # fmt: skip
def test_fingerprints_have_the_same_of_a_method_as_the_first_indexes(method, expected):
    assert digest(json.dumps(identity(method))) == expected


def test_unknown_fields_of_a_method_are_refused():
    value = to_json(METHODS["simcse"])
    with pytest.raises(ValueError, match="unknown fields"):
        from_json({**value, "colour": 1})


@pytest.mark.parametrize(
    ("name", "backbone", "supervised", "expected"),
    [
        ("promptbert", "bert-base", False, (256, 1e-5, 1, 0)),
        ("promptbert", "roberta-base", True, (512, 5e-5, 3, 0)),
        ("dcpcse", "bert-base", False, (256, 3e-2, 1, 16)),
        ("dcpcse", "roberta-large", False, (64, 1e-2, 1, 10)),
        ("dcpcse", "roberta-base", True, (256, 1e-2, 10, 10)),
        ("conpvp", "roberta-large", False, (256, 1e-5, 1, 0)),
        ("conpvp-no-negative", "bert-large", False, (128, 1e-5, 1, 0)),
        ("simcse", "bert-base", False, (64, 3e-5, 1, 0)),
        ("optiprompt", "bert-base", False, (256, 3e-5, 5, 0)),
        ("esimcse", "bert-base", False, (64, 3e-5, 1, 0)),
        ("esimcse", "roberta-large", False, (64, 1e-5, 1, 0)),
        ("consert", "bert-base", False, (96, 5e-7, 10, 0)),
    ],
)
def test_presets_are_the_published_rows(name, backbone, supervised, expected):
    method, config = preset(name, backbone, supervised)
    assert (config.batch_size, config.learning_rate, config.epochs, method.reading.prefix) == expected


def test_esimcse_repeats_and_remembers_what_was_published_for_each_backbone():
    presets = {key: preset("esimcse", key) for key in ("bert-base", "bert-large", "roberta-base", "roberta-large")}
    assert [method.repetition for method, _ in presets.values()] == [0.32, 0.32, 0.30, 0.28]
    assert [method.queue for method, _ in presets.values()] == [160, 160, 160, 128]
    assert [config.dropout for _, config in presets.values()] == [None, None, None, 0.15]


def test_roberta_takes_its_own_quotes_and_keeps_the_fresh_head_when_supervised():
    method, _ = preset("promptbert", "roberta-base")
    assert method.reading.template == MEANS_ROBERTA
    assert preset("promptbert", "roberta-base", True)[0].reading.head == "tanh"
    assert preset("promptbert", "bert-base", True)[0].reading.head == "transform"
    assert preset("dcpcse", "roberta-base")[0].mlm_weight == 0.1


def test_unknown_methods_and_missing_supervised_forms_are_named():
    with pytest.raises(ValueError, match="unknown method 'bert'; choose from simcse"):
        preset("bert", "bert-base")
    with pytest.raises(ValueError, match="conpvp has no supervised form"):
        preset("conpvp", "bert-base", True)


@pytest.mark.parametrize(("name", "supervised"), ALL)
def test_on_roberta_no_template_holds_berts_quotes_but_conpvps_released_sets(name, supervised):
    views = preset(name, "roberta-base", supervised)[0].views
    single = [view[0].text for view in views if len(view) == 1]
    assert not [text for text in single if '"' in text], "give it a form for RoBERTa in templates.ON_ROBERTA"
    assert [view for view in views if len(view) > 1] == [view for view in METHODS[name].views if len(view) > 1]
    assert [view[0].soft for view in views] == [view[0].soft for view in preset(name, "bert-base", supervised)[0].views]


def test_a_changed_pooling_is_that_of_training_too():
    changed = METHODS["consert"].changed(pooling="cls")
    assert (changed.reading.pooling, changed.training_pooling) == (Pooling.TOKEN, None)
    assert METHODS["simcse"].changed(pooling="cls") == METHODS["simcse"]
    assert METHODS["simcse"].changed(pooling="mean").changed(pooling="mean").reading.head_when is When.NEVER


def test_a_run_without_the_head_is_repeated_without_it():
    assert METHODS["simcse"].settings["head"] is None
    without = SUPERVISED["simcse"].changed(head=False)
    assert (without.reading.head_when, without.settings["head"]) == (When.NEVER, False)
    assert SUPERVISED["simcse"].changed(head=True) == SUPERVISED["simcse"]
    with pytest.raises(ValueError, match="consert has no head"):
        METHODS["consert"].changed(head=True)
