"""The stage: its scenes, and what each method draws on it."""
