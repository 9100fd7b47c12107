"""Compilation options with TorchAir's names."""
