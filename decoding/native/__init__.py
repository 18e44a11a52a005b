"""Few rows through a model's layers in one call of compiled code, where the machine can make it."""
