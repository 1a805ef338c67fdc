"""Grids of runs: methods by noise by seeds, and their tables and plot."""
