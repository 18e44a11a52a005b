"""Reconstructs a conversation from the token ids that a chat template made of it."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.codec import Codec
from decoding.errors import ParamError

_PROBES = ("the system prompt", "the first message", "the answer", "the second message")


def conversation_of(codec: Codec, ids: Sequence[int]) -> list[dict[str, str]] | None:
    """Return the messages that the model's template turns into exactly these ids; None for any other prompt."""
    if not codec.has_chat_template:
        return None
    whole: str = codec.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    for roles in (["user", "assistant", "user"], ["system", "user", "assistant", "user"]):
        try:
            messages = _split(codec, whole, roles)
            if messages and codec.encode_chat(messages) == list(ids):
                return messages
        except ParamError:  # a template without a system prompt, or one that refuses these messages
            continue
    return None


def _split(codec: Codec, whole: str, roles: Sequence[str]) -> list[dict[str, str]] | None:
    """Cut a text at the template's own words, which a made-up conversation of these roles shows."""
    probes = _PROBES[-len(roles) :]
    rest = codec.render([{"role": role, "content": probe} for role, probe in zip(roles, probes, strict=True)])
    seams = list[str]()
    for probe in probes:
        seam, _, rest = rest.partition(probe)
        seams.append(seam)
    before, *system, to_assistant, to_user = seams
    if not all(seams[1:]) or not (whole.startswith(before) and whole.endswith(rest)):
        return None
    messages, body = list[dict[str, str]](), whole[len(before) : len(whole) - len(rest)]
    for seam in system:
        text, _, body = body.partition(seam)
        messages.append({"role": "system", "content": text})
    role, seam = "user", to_user
    while seam:
        text, seam, body = body.partition(to_assistant if role == "user" else to_user)
        messages.append({"role": role, "content": text})
        role = "assistant" if role == "user" else "user"
    return messages if messages[-1]["role"] == "user" else None
