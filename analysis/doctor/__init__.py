"""Finds faults in the wiring of a drafter: checks its files, then measures it as given and with each flag changed."""

from decoding.parts import NAMED_PARTS

# The drafters that can be examined, by their flags, and the methods that use them.
KINDS = {name: NAMED_PARTS[name].method for name in ("eagle", "dflash", "medusa", "kangaroo")} | {
    "draft": "draft_model"
}
