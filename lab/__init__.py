"""What the command line alone uses: the embedded family, training of parts, and the papers' claims measured."""
