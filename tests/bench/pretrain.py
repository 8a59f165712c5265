"""How fast pretraining steps are: tokens a second, their share of the matrix rate, peak memory."""

from __future__ import annotations

from statistics import mean
from typing import Any

from cse.training.pretraining import check_request, prepare, take_step
from cse.training.pretraining_data import PretrainRequest
from tests.bench.flops import step_rate, training_flops
from tests.bench.timing import ROUNDS, interleaved


def measure_pretraining(request: PretrainRequest, steps: int = 8, rounds: int = ROUNDS) -> dict[str, Any]:
    """The rate (tokens/s) of the first `steps` steps of a run, taken again and again, with `slowest` and `fastest`.

    `share` is that of the `matrix_rate` (FLOP/s) in the precision of the run, `peak_mb` the memory of the process. The
    folder `request.output` gets the tokenised corpus and nothing else. Raises what pretraining does before its first
    step, and ValueError for no step.
    """
    if steps < 1:
        raise ValueError(f"`steps` is {steps}; give at least 1")
    check_request(request)
    training = prepare(request)

    def take() -> float:
        return sum(take_step(training, step).item() for step in range(steps))

    timing = interleaved({"pretrain": take}, rounds)["pretrain"]
    tokens, rate = steps * request.config.batch_tokens, step_rate(training.accelerator)
    lengths = [min(length, training.sampler.max_length) for length in request.config.lengths]
    flops = tokens * mean(training_flops(training.model, length) for length in lengths)  # of the mixed lengths
    return {
        "steps": steps, "batch_tokens": request.config.batch_tokens, "matrix_rate": rate, **timing.figures(tokens),
        "share": flops / timing.median / rate,
    }  # fmt: skip
