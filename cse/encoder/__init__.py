"""The way from text to vectors: rows of token ids, the stored backbone, and the engines PyTorch and OpenVINO."""

import sys
from types import ModuleType

# OpenVINO tells its makers what imports it, unless this package is missing, and takes .4 s for that (SECURITY.md).
if "openvino" not in sys.modules:
    sys.modules.setdefault("openvino_telemetry", ModuleType("openvino_telemetry", "Sends nothing."))
