"""Models: a `Model` opens a `Session`, and a session runs forward passes over trees of tokens."""
