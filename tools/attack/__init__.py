"""What a hostile visitor can do to everybody else, measured: `make attack`."""
