"""Writes the page to folders for hosting elsewhere: plain files, and Hugging Face Spaces."""
