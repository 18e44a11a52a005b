"""Writes the page into folders that others host: plain files, and Hugging Face Spaces."""
