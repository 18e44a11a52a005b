"""What the notebook docs/lab_speculation.ipynb brings: timed passes, and checks of what is written in it."""
