"""ASGI middleware in front of Gradio: it answers only the requests that the page and its scripts make."""
