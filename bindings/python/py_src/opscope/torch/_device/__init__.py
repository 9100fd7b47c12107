"""Numbers of tensors, computed on the device that holds the elements."""
