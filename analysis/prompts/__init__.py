"""Reads prompt sets and conversations from files."""
