"""What the processor's OpenVINO computes in bfloat16."""

from openvino import Core


def openvino_has_bf16() -> bool:
    """True if OpenVINO computes in bfloat16 here; a processor without it (one with AVX2 alone) computes in float32."""
    return "BF16" in Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
