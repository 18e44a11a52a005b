"""Every error a user can cause, each carrying one sentence that says what to change.

SpecscopeError
├── ParamError    a method parameter, sampling setting, prompt or flag is out of bounds
├── ModelError    a model folder, id or pair of models cannot be used
└── TraceError    a trace file is damaged, of another version, or hostile
"""


class SpecscopeError(ValueError):
    """Base of all errors whose message is meant for the user."""


class ParamError(SpecscopeError):
    """A value that the user chose cannot be used."""


class ModelError(SpecscopeError):
    """A model, or a pair of models, cannot be used."""


class TraceError(SpecscopeError):
    """A trace cannot be read."""
