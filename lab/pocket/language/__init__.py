"""The language of the embedded family: seven kinds of conversation, each with a checker, and drills before them."""
