"""Encoders as the folders of other tools: sentence-transformers, peft and ONNX; what is written is also read back."""
