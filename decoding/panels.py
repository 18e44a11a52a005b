"""The names in the methods' panels, each written by `panel()` of its method and read by the views.

A panel is plain JSON in the record, so a file from elsewhere may hold anything in it. Who reads such files refuses a
name that is not here; a test holds this table to what the methods write.
"""

from __future__ import annotations

NAMES: dict[str, frozenset[str]] = {
    "autoregressive": frozenset(),
    "jacobi": frozenset({"guesses", "answers", "settled"}),
    "lookahead": frozenset({"phase", "rows", "new", "key", "guesses", "pool"}),
    "draft_model": frozenset({"confidence", "threshold"}),
    "prompt_lookup": frozenset({"n", "ending", "copied_from"}),
    "ngrammys": frozenset({"k", "w", "winner", "nodes", "unmerged", "rows", "query", "matches", "places"}),
    "medusa": frozenset({"tree", "heads", "nodes", "hits", "typical"}),
    "kangaroo": frozenset({"exit_layer", "eta", "confidence", "stopped"}),
    "ouroboros": frozenset({"passes", "suffixes", "refined", "inspired", "pool", "counts"}),
    "rest": frozenset({"span", "ending", "hits", "read", "nodes", "top"}),
}
KNOWN = frozenset[str]().union(*NAMES.values())
