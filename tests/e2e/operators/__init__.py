"""Small models of one operator with values at the edges of their types, made at random."""
