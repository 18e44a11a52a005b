"""The calls of the Debug page."""
