"""The web page: layout, events and the server. `decoding` makes the runs, and `viz` draws them."""
