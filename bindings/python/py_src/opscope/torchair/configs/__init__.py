"""The options of a compilation, under TorchAir's names."""
