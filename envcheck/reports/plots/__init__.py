"""Plots as SVG text: bars, and lines over time. Pure; shapes and words carry what colours repeat."""
