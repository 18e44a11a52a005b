"""Models in GGUF, llama.cpp's format: one file with sizes, tokenizer and weights, mostly quantised."""
