"""Makes the embedded family: its language, its tokenizer, its two models and their tasks."""
