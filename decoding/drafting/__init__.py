"""What methods draft with: a drafter, a window, a pool of n-grams, an index of suffixes."""
