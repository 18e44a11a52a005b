"""Between text and ids, with tokenizers of both kinds built here: byte-level, and SentencePiece-like."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.conversation import conversation_of
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.table import TableModel
from tests.noise import noise
from tests.toys import hashed

CORPUS = [
    "the cat sat on the mat",
    "the dog ate the cat's hat",
    "naïve café déjà vu",
    "日本語の本",
    "def f(x):\n\treturn x",
]
TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<me>{% endif %}"
)
REFUSING = "{{ raise_exception('system messages are not supported') }}"


SPECIALS = ["<unk>", "<s>", "</s>"]


def byte_level() -> Any:
    """Make a tokenizer like GPT-2's: every byte has a letter, so there is nothing it cannot write."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=SPECIALS, initial_alphabet=letters, show_progress=False
    )
    raw.train_from_iterator(CORPUS, trainer)
    return raw


def piece_level() -> Any:
    """Make one like Llama's SentencePiece: a sign for a space before every word, bytes for unseen letters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=SPECIALS, show_progress=False)
    raw.train_from_iterator(CORPUS[:3], trainer)
    learned = json.loads(raw.to_str())["model"]
    vocabulary = learned["vocab"] | {f"<0x{byte:02X}>": len(learned["vocab"]) + byte for byte in range(256)}
    merges = [tuple(pair) for pair in learned["merges"]]
    raw.model = models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    raw.decoder = decoders.Sequence(steps)
    return raw


def tokenizer(kind: str, template: str | None = None) -> Any:
    """Return a small trained tokenizer as transformers hands it out."""
    from transformers import PreTrainedTokenizerFast

    raw = byte_level() if kind == "bytes" else piece_level()
    made = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    made.chat_template = template
    return made


@pytest.fixture(scope="module")
def codecs() -> dict[str, Codec]:
    """Return one codec of each kind."""
    return {kind: Codec(tokenizer(kind, TEMPLATE)) for kind in ("bytes", "pieces")}


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("text", ["the cat", " leading", "déjà vu", "日本語", "a\n\tb", "🙂 ok", "</script>$$`x`"])
def test_a_text_survives_the_round_trip(kind: str, text: str, codecs: dict[str, Codec]) -> None:
    """A space lost or a byte garbled between prompt and ids changes what the model is asked."""
    codec = codecs[kind]
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@given(st.text(max_size=30), st.integers(0, 30))
def test_a_continuation_is_what_stands_behind_the_prompt(
    kind: str, codecs: dict[str, Codec], text: str, cut: int
) -> None:
    """Decoding new tokens alone drops their leading space, or shows half a character."""
    codec = codecs[kind]
    ids = codec.tokenizer.encode(text.encode(errors="replace").decode(), add_special_tokens=False)
    head, tail = ids[:cut], ids[cut:]
    whole, lead = codec.decode(ids), codec.decode(head)
    if not head or (whole.startswith(lead) and len(head) <= 8):
        assert lead + codec.continuation(head, tail) == whole or not head


def test_a_leading_space_is_kept(codecs: dict[str, Codec]) -> None:
    """SentencePiece decoders strip the first piece's space: "the" + " cat" would read "thecat"."""
    ids = codecs["pieces"].encode("the cat sat on the mat")
    for cut in range(1, len(ids)):
        lead = codecs["pieces"].decode(ids[:cut])
        assert lead + codecs["pieces"].continuation(ids[:cut], ids[cut:]) == "the cat sat on the mat"


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
def test_a_piece_is_text_or_bytes(kind: str, codecs: dict[str, Codec]) -> None:
    """Half a character must show as its bytes, a space as a space, and no id may raise."""
    codec = codecs[kind]
    pieces = [codec.piece(token) for token in range(len(codec.tokenizer))]
    assert all(isinstance(piece, str) and piece and "\ufffd" not in piece for piece in pieces)
    assert not any("▁" in piece or "Ġ" in piece for piece in pieces)
    assert {"<0xE6>", "</s>", " the", "at"} <= set(pieces)
    assert "".join(codec.piece(token) for token in codec.encode("the cat sat")).strip() == "the cat sat"
    assert codec.piece(10_000) == "<10000>"


def test_bytes_of_a_split_character_are_shown(codecs: dict[str, Codec]) -> None:
    """A character that spans several tokens is no text until it is complete."""
    codec = codecs["bytes"]
    shown = "".join(codec.piece(token) for token in codec.encode("🙂"))
    assert shown == "".join(f"<0x{byte:02X}>" for byte in "🙂".encode())


@given(st.text(alphabet=st.characters(), max_size=20).map(lambda text: text + "\ud800"))
def test_lone_surrogates_become_question_marks(codecs: dict[str, Codec], text: str) -> None:
    """A browser can send half a UTF-16 pair; a tokenizer written in Rust cannot take it."""
    for codec in codecs.values():
        assert codec.encode(text) == codec.encode(text.encode(errors="replace").decode())
        assert codec.encode_chat([{"role": "user", "content": text}])


def test_a_chat_goes_through_the_models_template(codecs: dict[str, Codec]) -> None:
    """An answer without its opening, or special tokens twice, is another conversation."""
    chat = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
    ids = codecs["bytes"].encode_chat(chat)
    assert codecs["bytes"].decode(ids) == "<user>the cat<assistant>sat<me>"


def test_a_conversation_is_found_again_in_its_ids(codecs: dict[str, Codec]) -> None:
    """With a system prompt or without one; of any other ids there is none, and none is made up."""
    codec = codecs["bytes"]
    talk = [{"role": role, "content": f"the {role}"} for role in ("system", "user", "assistant", "user")]
    for chat in (talk, talk[1:], talk[1:2]):
        assert conversation_of(codec, codec.encode_chat(chat)) == chat
    ids = codec.encode_chat(talk)
    for other in (ids[1:], ids[:-1], codec.encode("the cat"), codec.encode_chat(talk[:3])):
        assert conversation_of(codec, other) is None


@pytest.mark.parametrize(
    ("template", "chat", "words"),
    [
        (None, [{"role": "user", "content": "x"}], "no chat template: give the prompt as plain text"),
        (TEMPLATE, [{"role": "user"}], 'needs a "role" and a "content"'),
        (TEMPLATE, [{"role": "user", "content": "x"}, "y"], 'needs a "role" and a "content"'),
        (REFUSING, [{"role": "system", "content": "x"}], "refuses this conversation: system messages are not supp"),
        ("{{ 1 / 0 }}", [{"role": "user", "content": "x"}], "refuses this conversation: division by zero"),
        ("{% broken", [{"role": "user", "content": "x"}], "refuses this conversation"),
        ("{{ messages[7].content.x.y }}", [{"role": "user", "content": "x"}], "refuses this conversation"),
    ],
)
def test_a_chat_that_cannot_be_written_is_refused(template: str | None, chat: Any, words: str) -> None:
    """A template is a foreign program: whatever it raises must become one sentence."""
    with pytest.raises(ParamError, match=words):
        Codec(tokenizer("bytes", template)).encode_chat(chat)


def test_prompts_that_are_no_prompts_are_refused(codecs: dict[str, Codec]) -> None:
    """An empty text has no last token to start from; ids beyond the vocabulary have no embedding."""
    machine = Engine(hashed(vocabulary=400), codecs["bytes"])
    for prompt in ("", [], (), {}, None, [400], [-1], [True]):
        with pytest.raises(ParamError):
            machine.decode(prompt)  # type: ignore[arg-type]
    with pytest.raises(ParamError, match="no tokenizer: give the prompt as token ids"):
        Engine(hashed(), Codec()).decode("text")


def test_ends_of_text() -> None:
    """A model without an end must run to its budget; one with an end stops there by itself."""
    assert Codec().end_tokens == frozenset()
    codec = Codec(tokenizer("bytes"))
    assert codec.end_tokens == {2}
    always_ends = TableModel(lambda key: -(noise(0, (0,), 400).abs() + 1).index_fill(0, torch.tensor([2]), 0.0), 1, 400)
    assert Engine(always_ends, codec).generate("the cat").ids == (2,)


def spoken(codec: Codec, text: str, prompt: str) -> Engine:
    """Make an engine that can only continue `prompt` to `text`, counting from the last of its tokens."""
    ids = codec.encode(text)
    assert ids[: len(codec.encode(prompt))] == codec.encode(prompt)
    follow = {tuple(ids[:i]): token for i, token in enumerate(ids)}
    size = len(codec.tokenizer)
    eye = torch.eye(size, dtype=torch.float64)
    return Engine(TableModel(lambda key: eye[follow.get(key, 0)], 64, size), codec)


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("stop", [" cat", "cat", " sat on", "e m", "mat"])
def test_a_stop_string_ends_the_run_where_the_text_meets_it(kind: str, stop: str, codecs: dict[str, Codec]) -> None:
    """One that begins with the first new token's space, or spans several tokens, must not be run over."""
    text = "the cat sat on the mat"
    result = spoken(codecs[kind], text, "the").generate("the", max_new_tokens=6, stop=[stop])
    assert "the" + result.text == text[: text.index(stop)]
    assert result.summary.finish == "stop"
    assert len(result.ids) < 6 or stop == "mat"
