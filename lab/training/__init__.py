"""Training what methods need beside a model: Medusa heads, with or without the model itself, and Kangaroo adapters."""
