"""Statistics of tensors, computed on their device."""
