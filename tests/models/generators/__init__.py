"""Models that are built rather than stored; see `generate.py` one folder up."""
