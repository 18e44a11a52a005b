"""Finds faults in the wiring of a drafter: checks its files, then measures it as given and with each flag changed."""
