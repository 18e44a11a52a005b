"""The family's tokenizer: byte-level BPE over our own text, as an ordinary transformers folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SIZE = 4096
START, END, PAD, SYSTEM, USER, ASSISTANT = "<s>", "</s>", "<pad>", "<|system|>", "<|user|>", "<|assistant|>"
SPECIAL = (PAD, START, END, SYSTEM, USER, ASSISTANT)  # in the order of their ids
CONTEXT = 1024

# A turn is its role's token and its text; an answer ends with the end token, where generation stops.
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'system' %}<|system|>{{ message['content'] }}"
    "{% elif message['role'] == 'user' %}<|user|>{{ message['content'] }}"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}{{ eos_token }}"
    "{% else %}{{ raise_exception('roles are system, user and assistant') }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def train_tokenizer(texts: Iterable[str], size: int = SIZE) -> PreTrainedTokenizerFast:
    """Train merges on the texts. Every digit stays one token, so that sums can be worked in columns."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    # A word keeps the space before it; each digit is a piece; marks, line ends and indents are pieces, too.
    pieces = Regex(r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\n+|[^\S\n]+(?=[^\S\n])|\s")
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pieces, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    # A plain text is a user's question, so that a prompt needs no template.
    inner.post_processor = processors.TemplateProcessing(
        single=f"{START} {USER} $A {ASSISTANT}",
        pair=f"{START} {USER} $A $B {ASSISTANT}",
        special_tokens=[(text, SPECIAL.index(text)) for text in (START, USER, ASSISTANT)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        chat_template=TEMPLATE,
        model_max_length=CONTEXT,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
