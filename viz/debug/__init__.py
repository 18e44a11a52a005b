"""Draws the metrics of run folders: pure functions from a metric's result to a plotly figure."""
