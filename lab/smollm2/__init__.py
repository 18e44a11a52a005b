"""Makes the parts that accelerate SmolLM2, from texts that the model itself writes."""
