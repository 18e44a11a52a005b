"""A recorded run checked against itself, against its model, and against a run of the same settings."""
