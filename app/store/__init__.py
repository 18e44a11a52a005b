"""What can be opened again: recordings, traces of live runs, run folders."""
