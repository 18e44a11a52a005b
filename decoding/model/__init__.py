"""Models as the engine sees them: a `Model` opens a `Session`, a session reads trees of tokens."""
