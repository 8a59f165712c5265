"""Pickles of encoders: the same vectors in another process, of every method, trained ones and whole pipelines."""

import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import torch
from conftest import ROOT, SENTENCES, fresh_backbone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import cse
from cse.encoder.torch_encoder import TorchEncoder
from cse.methods.catalogue import METHODS

OPEN = """
import sys, joblib, numpy as np
*encoders, pipeline = joblib.load(sys.argv[1])
np.savez(sys.argv[2], *[encoder.encode(sys.argv[3:]) for encoder in encoders], pipeline.predict(sys.argv[3:]))
"""


def changed(bert_folder: Path, name: str) -> TorchEncoder:
    """An encoder whose learned numbers are in no file."""
    encoder = TorchEncoder(*fresh_backbone(bert_folder), METHODS[name], name=name, backbone=str(bert_folder))
    with torch.no_grad():
        for tensor in encoder.learned().values():
            tensor.add_(0.01 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(4)))
    return encoder


def test_joblib_brings_encoders_and_a_pipeline_to_another_process(bert_folder, tmp_path):
    encoders = [
        *(changed(bert_folder, name) for name in ("conpvp", "dcpcse")),
        *(cse.load(str(bert_folder), "first-last", backend=name) for name in ("torch", "openvino")),
    ]
    first = encoders[0]
    first.prompts, first.default_prompt_name, first.max_seq_length = {"sad": "it is sad : "}, "sad", 40
    encoders[2].encode(SENTENCES)  # states of all layers, for which transformers leaves hooks
    pipeline = make_pipeline(FunctionTransformer(first.encode), LogisticRegression())
    pipeline.fit(SENTENCES, [number % 2 for number in range(len(SENTENCES))])
    expected = [*(encoder.encode(SENTENCES) for encoder in encoders), pipeline.predict(SENTENCES)]
    joblib.dump([*encoders, pipeline], tmp_path / "all.joblib")
    command = [sys.executable, "-c", OPEN, str(tmp_path / "all.joblib"), str(tmp_path / "found.npz"), *SENTENCES]
    subprocess.run(command, cwd=ROOT, check=True)
    with np.load(tmp_path / "found.npz") as stored:
        for number, rows in enumerate(expected):
            np.testing.assert_allclose(stored[f"arr_{number}"], rows, atol=1e-5)
