"""Serves the page: uvicorn, the request filter, queues, limits and the log."""
