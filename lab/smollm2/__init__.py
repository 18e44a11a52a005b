"""What SmolLM2 is accelerated with, made from what the model itself writes."""
