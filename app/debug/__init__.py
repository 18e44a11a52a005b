"""The server functions of the Debug tab."""
