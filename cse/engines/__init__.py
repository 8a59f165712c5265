"""The engines that compute vectors from rows: PyTorch and OpenVINO, their devices and precisions."""
