"""The way from text to vectors: rows of token ids, the stored backbone, and the engines PyTorch and OpenVINO."""
