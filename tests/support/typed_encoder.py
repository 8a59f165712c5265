"""Types of the encoder for type checkers: read by mypy in `scripts/check`, never run."""

import numpy as np
import torch
from typing_extensions import assert_type

import cse

ENCODER = cse.load("promptbert")
assert_type(ENCODER.encode("a"), np.ndarray)
assert_type(ENCODER.encode(["a"], "query", batch_size=8, precision="int8", truncate_dim=4), np.ndarray)
assert_type(ENCODER.encode_query("a", batch_size=8), np.ndarray)
assert_type(ENCODER.similarity([[1.0]], [[1.0]]), torch.Tensor)
ENCODER.max_seq_length = 64
ENCODER.max_seq_length = None
ENCODER.similarity_fn_name = "dot"
