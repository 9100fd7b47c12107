"""Under TorchAir's name."""
