"""The web page: layout, events and the server. `decoding` makes the runs, and `viz` draws them."""

from .server.gradio_import import leave_stubs_out

leave_stubs_out()
