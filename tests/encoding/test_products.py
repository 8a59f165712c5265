"""Products by oneDNN: the numbers and gradients of PyTorch's own, on the processors and inputs that they are for."""

import pytest
import torch
from torch.nn.functional import linear

from cse.encoding import products
from cse.encoding.machine import family, vendor
from tests.bench.flops import matrix_rate

CPU = torch.device("cpu")


@pytest.fixture
def by_onednn(monkeypatch):
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this PyTorch is built without oneDNN's product")
    monkeypatch.setattr(products, "onednn_is_faster", lambda: True)


@pytest.fixture
def taken(monkeypatch):
    """The shapes of the rows that oneDNN multiplied."""
    shapes, product = [], products._product
    monkeypatch.setattr(products, "_product", lambda rows, *rest: shapes.append(rows.shape) or product(rows, *rest))
    return shapes


def tensors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(64, 24), (7, 13, 24), (2, 3, 50, 24)])
@pytest.mark.usefixtures("by_onednn")
def test_products_and_gradients_are_those_of_double_precision(shape, bias, taken) -> None:
    inputs = tensors(shape, (40, 24), (40,))[: 2 + bias]
    with products.quick_products(CPU, 1000):
        found = linear(*inputs)
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    expected = linear(*exact)
    weights = torch.randn_like(expected)
    gradients = torch.autograd.grad((found * weights).sum(), inputs)
    wanted = torch.autograd.grad((expected * weights).sum(), exact)
    assert len(taken) == 3  # forward, and the gradients of rows and weight
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for gradient, exactly in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient.double(), exactly, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("by_onednn")
def test_a_frozen_weight_gets_no_gradient_and_costs_none(taken) -> None:
    rows, weight = tensors((64, 24), (40, 24))
    with products.quick_products(CPU, 64):
        linear(rows, weight.requires_grad_(False)).sum().backward()
    assert weight.grad is None
    assert rows.grad is not None
    assert len(taken) == 2


@pytest.mark.usefixtures("by_onednn")
def test_products_of_many_numbers_of_rows_compile_few_kernels(capfd: pytest.CaptureFixture[str]) -> None:
    """Batches of 64 to 363 rows, forward and backward, by oneDNN's own account of what it compiles."""
    weight = torch.ones(41, 23, requires_grad=True)  # sizes of no other test, whose kernels would be there already
    with products.quick_products(CPU, 1000), torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON_CREATION):
        for count in range(64, 364):
            linear(torch.ones(count, 23, requires_grad=True), weight).sum().backward()
    compiled = [line for line in capfd.readouterr().out.splitlines() if "create:cache_miss" in line]
    assert 3 <= len(compiled) <= 3 * (8 + 8 + 5)  # forward, the gradients of rows and of weight; 8 numbers an octave


def test_rows_are_filled_up_by_less_than_an_eighth() -> None:
    filled = {count: products._filled(torch.ones(count, 1)) for count in range(64, 2049)}
    assert len({len(rows) for rows in filled.values()}) == 5 * 8 + 1
    for count, rows in filled.items():
        assert len(rows) < count * 9 / 8
        assert rows[:count].all()
        assert not rows[count:].any()


@pytest.mark.usefixtures("by_onednn")
def test_few_rows_other_numbers_and_mixed_precision_stay_with_pytorch(taken) -> None:
    rows, weight = (tensor.detach() for tensor in tensors((64, 24), (40, 24)))
    with products.quick_products(CPU, 63):
        linear(rows, weight)
    with products.quick_products(CPU, 64):
        linear(rows[:63], weight)
        assert linear(rows.double(), weight.double()).dtype == torch.float64
        with torch.autocast("cpu", torch.bfloat16):
            assert linear(rows, weight).dtype == torch.bfloat16
    assert taken == []
    with products.quick_products(CPU, 64):
        linear(rows, weight)
    assert taken == [(64, 24)]


@pytest.mark.parametrize(
    ("maker", "kind", "flags", "faster"),
    [
        ("AuthenticAMD", 26, "fpu avx2 avx512f", True),
        ("AuthenticAMD", 25, "fpu avx2 avx512f", False),
        ("AuthenticAMD", 26, "fpu avx2", False),
        ("GenuineIntel", 26, "fpu avx2 avx512f", False),
    ],
)
def test_it_is_for_amd_with_whole_avx512(maker, kind, flags, faster, monkeypatch, tmp_path) -> None:
    told = f"processor\t: 0\nvendor_id\t: {maker}\ncpu family\t: {kind}\nmodel\t\t: 17\nflags\t\t: {flags}\n"
    (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr("cse.encoding.machine.CPU", tmp_path / "cpuinfo")
    assert (vendor(), family()) == (maker, kind)
    assert products.onednn_is_faster.__wrapped__() == (faster and hasattr(torch.ops.mkldnn, "_linear_pointwise"))


@pytest.mark.usefixtures("by_onednn")
def test_the_matrix_rate_is_that_of_the_faster_product(taken) -> None:
    assert matrix_rate(CPU, torch.float32) > 1e8
    assert set(taken) == {(1024, 1024)}


@pytest.mark.usefixtures("by_onednn")
@pytest.mark.parametrize("name", ["simcse", "promptbert", "dcpcse", "conpvp"])
def test_an_encoder_gives_the_vectors_it_gave(name, monkeypatch, taken) -> None:
    import cse

    encoder = cse.load(name)
    texts = [
        f"The {word} stood near the old harbour for {count} days." for count, word in enumerate("ship bus".split())
    ]
    texts = texts * 20 + ["", "word " * 300]
    quick = encoder.encode(texts)
    assert taken
    monkeypatch.setattr(products, "onednn_is_faster", lambda: False)
    count = len(taken)
    torch.testing.assert_close(torch.from_numpy(quick), torch.from_numpy(encoder.encode(texts)), rtol=0, atol=1e-5)
    assert len(taken) == count
