"""TorchAir's `core` namespace."""
