"""Trains the parts of methods: Medusa heads, with or without the model itself, Kangaroo adapters and drafters."""
