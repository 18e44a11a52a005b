"""The models that the page offers: where they come from, and which of them are in memory."""
