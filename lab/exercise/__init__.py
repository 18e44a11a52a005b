"""Helps the notebook docs/lab_speculation.ipynb: timed passes, and checks of the answers."""
