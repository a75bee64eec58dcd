"""Runs what is asked for: compiles, counts without a GPU, measures with one, renders."""
