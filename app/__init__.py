"""The web page: layout and events only. What it shows comes from `decoding`, how it looks from `viz`."""
