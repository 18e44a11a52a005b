"""The datastore against a plain search through its documents, and its file against damage of every kind."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from decoding.codec import Codec
from decoding.errors import ModelError, ParamError
from decoding.parts.datastore import DIGEST, HEADER, Continuations, digest, fingerprint, load_store
from decoding.parts.suffixes import frequent
from decoding.toy import toy
from lab.training import datastore as building
from lab.training.conversations import Conversation, read_conversations
from lab.training.datastore import Built, build_store, write_store
from tests.toy_store import open_store

NOBODY = fingerprint(Codec())  # of tests whose ids belong to no tokenizer
TOY = toy().codec


def random_documents(seed: int, words: int = 4) -> list[list[int]]:
    """Short texts of a few words, in which phrases recur."""
    chance = random.Random(seed)
    return [[chance.randrange(words) for _ in range(chance.randint(1, 30))] for _ in range(chance.randint(1, 12))]


def save(path: Path, documents: Sequence[Sequence[int]], vocabulary: int = 9, chunk: int = 2**10) -> Built:
    return write_store(path, NOBODY, vocabulary, [(document, True) for document in documents], chunk=chunk)


def stored(path: Path) -> list[list[int]]:
    """The documents as the file holds them, cut where a chunk ends; asserts that the file is in order."""
    data, documents = load_file(path), list[list[int]]()
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    border = int(header["__metadata__"]["vocabulary"])
    for i in range(len(data) // 2):
        tokens, order = data[f"tokens.{i}"].tolist(), data[f"order.{i}"].tolist()
        assert order == sorted(range(len(tokens)), key=lambda place: tokens[place:])
        assert tokens[-1] == border
        here: list[int] = []
        for token in tokens:
            if token != border:
                here.append(token)
            elif here:
                documents.append(here)
                here = []
    return documents


def ways_of(continuations: Continuations) -> list[tuple[int, ...]]:
    """What follows, place by place."""
    return [tuple(token for token in way if token >= 0) for way in continuations.ways.T.tolist()]


def search(documents: Sequence[Sequence[int]], text: Sequence[int], longest: int, shortest: int, length: int) -> Any:
    """The rule, written out: the longest end of the text that occurs with a token after it."""
    for span in range(min(longest, len(text)), shortest - 1, -1):
        ending = list(text[-span:])
        ways = [
            tuple(document[at + span : at + span + length])
            for document in documents
            for at in range(len(document) - span)
            if list(document[at : at + span]) == ending
        ]
        if ways:
            return span, sorted(ways)
    return 0, []


@pytest.mark.parametrize("chunk", [4, 6, 16, 2**10])
def test_what_is_found_is_what_a_plain_search_finds(chunk: int, tmp_path: Path) -> None:
    """A match lost at a chunk's or document's end, a continuation across a border, a wrong order of the suffixes."""
    path, deep = tmp_path / "store", 0
    for seed in range(12):
        documents, chance = random_documents(seed), random.Random(seed)
        built = save(path, documents, chunk=chunk)
        pieces, store = stored(path), load_store(path, NOBODY)
        assert sum(pieces, []) == sum(documents, [])
        assert built == Built(len(documents), sum(map(len, documents)), path.stat().st_size)
        for _ in range(25):
            text = [chance.randrange(5) for _ in range(chance.randint(1, 9))]
            longest, length = chance.randint(1, 9), chance.randint(1, 6)
            shortest = chance.randint(1, longest)
            continuations = store.continuations(text, longest, shortest, length, 5000)
            span, ways = search(pieces, text, longest, shortest, length)
            assert (continuations.span, continuations.hits, sorted(ways_of(continuations))) == (span, len(ways), ways)
            deep += span >= 3
    assert deep > (20 if chunk > 6 else 5) or chunk == 4


def test_places_are_spread_evenly() -> None:
    """The first places in the suffixes' order are those with the lowest ids: guesses from them alone are biased."""
    store = open_store([([500, 501, token], True) for token in range(100)], 600)
    continuations = store.continuations([500, 501], 2, 1, 3, 10)
    assert (continuations.span, continuations.hits) == (2, 100)
    assert ways_of(continuations) == [(token,) for token in range(0, 100, 10)]
    assert store.continuations([500, 501], 2, 1, 3, 99).ways.shape == (3, 99)


def test_places_are_spread_over_all_chunks() -> None:
    """Chunks with more matches must weigh more, and together they must not exceed the limit."""
    documents = [([7, 8, token], True) for token in (1, 2, 3, 4, 5, 6)]
    continuations = open_store(documents, 9, chunk=10).continuations([7, 8], 2, 2, 1, 3)
    assert (continuations.hits, ways_of(continuations)) == (6, [(1,), (3,), (5,)])


@pytest.mark.parametrize(("vocabulary", "kind"), [(65_535, "uint16"), (65_536, "uint32"), (200_000, "uint32")])
def test_ids_need_as_many_bytes_as_they_need(vocabulary: int, kind: str, tmp_path: Path) -> None:
    """An id or a border beyond 65,535 must not wrap around to another token."""
    top = vocabulary - 1
    save(tmp_path / "store", [[1, top, 2, top - 1], [top, 2]], vocabulary)
    assert load_file(tmp_path / "store")["tokens.0"].dtype == kind
    continuations = load_store(tmp_path / "store", NOBODY).continuations([top, 2], 4, 1, 4, 9)
    assert (continuations.span, ways_of(continuations)) == (2, [(top - 1,)])
    with pytest.raises(ParamError, match=f"not below {vocabulary}"):
        save(tmp_path / "other", [[vocabulary]], vocabulary)


def test_the_text_may_hold_ids_that_the_store_does_not_know() -> None:
    """The id after the tokenizer's last stands for borders: as a part of a phrase it would join documents."""
    store = open_store([([1, 2], True), ([3, 4], True)], 9)
    assert store.continuations([2, 9], 4, 1, 4, 9).span == 0
    assert ways_of(store.continuations([2, 9, 3], 4, 1, 4, 9)) == [(4,)]
    assert store.continuations([2, 10**9, 3], 4, 1, 4, 9).span == 1


def test_ids_beyond_the_models_vocabulary_stay_in_the_store(tmp_path: Path) -> None:
    """A tokenizer may know more entries than the model has embeddings: such an id would crash its forward pass."""
    save(tmp_path / "store", [[1, 2, 8, 3], [1, 2, 5, 3]])
    continuations = load_store(tmp_path / "store", NOBODY, 8).continuations([1, 2], 4, 1, 4, 9)
    assert sorted(ways_of(continuations)) == [(), (5, 3)]
    assert continuations.prefixes(9) == [((5,), 1), ((5, 3), 1)]


def counted(rows: Sequence[tuple[int, ...]], most: int, ends: Sequence[int]) -> list[tuple[tuple[int, ...], int]]:
    """The rule, written out: every prefix up to the first end token, by count, then length, then tokens."""
    counts = Counter[tuple[int, ...]]()
    for row in rows:
        for n in range(1, len(row) + 1):
            counts[row[:n]] += 1
            if row[n - 1] in ends:
                break
    return sorted(counts.items(), key=lambda entry: (-entry[1], len(entry[0]), entry[0]))[:most]


WAYS = st.lists(st.lists(st.integers(0, 2), min_size=0, max_size=5).map(tuple), max_size=30)


@given(WAYS, st.integers(1, 40), st.sets(st.integers(0, 2), max_size=2))
def test_the_most_frequent_prefixes_are_those_of_a_plain_count(ways: Any, most: int, ends: set[int]) -> None:
    """A wrong count, a tie broken by chance, a prefix without its own beginning."""
    columns = np.array([[*way, *[-1] * (5 - len(way))] for way in sorted(ways)], dtype=np.int64).reshape(-1, 5).T
    kept = Continuations(1, len(ways), columns).prefixes(most, ends)
    assert kept == counted(ways, most, sorted(ends))
    assert all(prefix[:-1] in {(), *dict(kept)} for prefix, _ in kept)
    assert frequent(columns, 0) == []


def test_a_store_tells_what_it_is(tmp_path: Path) -> None:
    """The record of a run names its parts, so that another content must have another name."""
    for name, token in (("a.safetensors", 1), ("b.safetensors", 2)):
        save(tmp_path / name, [[token]])
    one, two = (load_store(tmp_path / name, NOBODY).about for name in ("a.safetensors", "b.safetensors"))
    assert one.startswith("a.safetensors ") and two.startswith("b.safetensors ") and one[-12:] != two[-12:]


# Damage.

Damage = Callable[[Path], object]


def foreign(path: Path) -> None:
    save_file({"weight": np.zeros(4, dtype=np.float32)}, path)


def edit(path: Path, change: Callable[[dict[str, Any], dict[str, str]], object]) -> None:
    """Save the store's tensors and metadata anew, changed, with a digest that fits: what a hostile author would do."""
    data, raw = load_file(path), path.read_bytes()
    meta = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    del data["digest"]
    change(data, meta)
    save_file(data, path, meta)
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        rest = file.read()
    header["digest"] = {"dtype": "U8", "shape": [DIGEST], "data_offsets": [len(rest), len(rest) + DIGEST]}
    text = json.dumps(header).encode().ljust(HEADER - 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    assert path.stat().st_size > size
    with path.open("rb") as file:
        proof = digest(file, path.stat().st_size)
    path.write_bytes(path.read_bytes() + proof)


def change_meta(name: str, value: str) -> Damage:
    return lambda path: edit(path, lambda data, meta: meta.update({name: value}))


def change_tensor(name: str, array: Any) -> Damage:
    return lambda path: edit(path, lambda data, meta: data.update({name: array}))


def drop(*names: str) -> Damage:
    return lambda path: edit(path, lambda data, meta: [data.pop(name) for name in names])


def cut(size: int) -> Damage:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def flip(place: int) -> Damage:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return damage


REFUSED: list[tuple[Damage, str]] = [
    (lambda path: path.unlink(), "there is no datastore 'store'"),
    (lambda path: (path.unlink(), path.mkdir()), "no datastore, or was cut short"),
    (cut(0), "no datastore, or was cut short"),
    (cut(7), "no datastore, or was cut short"),
    (cut(HEADER), "no datastore, or was cut short"),
    (cut(-1), "no datastore, or was cut short"),
    (lambda path: path.write_text("once upon a time"), "no datastore, or was cut short"),
    (foreign, "is no datastore: name a file made by"),
    (flip(HEADER - 1), "no datastore, or was cut short|damaged"),
    (flip(HEADER), "damaged: copy or build it again"),
    (flip(-DIGEST - 1), "damaged: copy or build it again"),
    (flip(-1), "damaged: copy or build it again"),
    (change_meta("format", "novel"), "is no datastore: name a file made by"),
    (change_meta("version", "2"), "another format than this program reads"),
    (change_meta("fingerprint", "0" * 64), "another tokenizer: build one with this model's"),
    (change_meta("vocabulary", "-1"), "damaged"),
    (change_meta("vocabulary", "9" * 5000), "damaged"),
    (drop("tokens.0"), "damaged"),
    (drop("order.0"), "damaged"),
    (drop("tokens.0", "order.0"), "damaged"),
    (change_tensor("order.0", np.zeros(3, dtype=np.uint32)), "damaged"),
    (change_tensor("order.0", np.zeros((2, 2), dtype=np.uint32)), "damaged"),
    (change_tensor("tokens.0", np.zeros(8, dtype=np.float32)), "damaged"),
    (change_tensor("tokens.0", np.zeros((), dtype=np.uint16)), "damaged"),
]


@pytest.mark.parametrize(("damage", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_whole_store_of_this_tokenizer_is_refused(damage: Damage, reason: str, tmp_path: Path) -> None:
    """A damaged file must end in one sentence, not in a traceback and not in silent nonsense."""
    path = tmp_path / "store"
    save(path, [[1, 2, 3, 4, 5]])
    load_store(path, NOBODY)
    damage(path)
    with pytest.raises(ModelError, match=reason) as caught:
        load_store(path, NOBODY)
    assert "\n" not in str(caught.value)


def test_one_wrong_bit_anywhere_in_a_large_store_is_found(tmp_path: Path) -> None:
    """Blocks spread over a file of several MB leave gaps, in which a store is corrupt and opens all the same."""
    path, source = tmp_path / "store", np.random.default_rng(1)
    save(path, [source.integers(0, 9, 900_000).tolist()], chunk=2**20)
    size = path.stat().st_size
    assert size > 5 * 2**20
    assert load_store(path, NOBODY).continuations([1, 2, 3], 3, 3, 1, 9).hits > 100
    for place in (70_000, size // 2 + 1, size - DIGEST - 1):
        flip(place)(path)
        with pytest.raises(ModelError, match="damaged: copy or build it again"):
            load_store(path, NOBODY)
        flip(place)(path)
    load_store(path, NOBODY)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "\udcff", ""])
def test_impossible_names_are_refused(path: str) -> None:
    with pytest.raises(ModelError):
        load_store(path, NOBODY)


def test_an_edited_store_with_a_fitting_digest_still_opens(tmp_path: Path) -> None:
    """The refusals above would prove nothing if every edited file were refused."""
    save(tmp_path / "store", [[1, 2, 3, 4, 5]])
    edit(tmp_path / "store", lambda data, meta: None)
    assert ways_of(load_store(tmp_path / "store", NOBODY).continuations([2, 3], 2, 2, 9, 9)) == [(4, 5)]


@given(data=st.data())
def test_no_content_makes_a_lookup_fail(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Places beyond the stream, ids beyond the vocabulary, suffixes in no order: bad guesses, and no exception."""
    path, size = tmp_path_factory.getbasetemp() / "hostile", data.draw(st.integers(0, 12))
    numbers = st.one_of(st.integers(0, 12), st.integers(0, 2**32 - 1))
    wide = data.draw(st.booleans())
    order = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)), dtype=np.uint32)
    tokens = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)), dtype=np.uint32)
    save(path, [[1, 2, 3, 4, 5]])
    edit(path, lambda old, meta: old.update({"order.0": order, "tokens.0": tokens if wide else tokens.astype("u2")}))
    edit(path, lambda old, meta: meta.update({"vocabulary": str(data.draw(numbers))}))
    text = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
    continuations = load_store(path, NOBODY, 9).continuations(text, 4, 1, 5, 6)
    kept = continuations.prefixes(8, {3})
    assert all(0 <= token < 9 for prefix, _ in kept for token in prefix)
    assert all(prefix[:-1] in {(), *dict(kept)} for prefix, _ in kept)


# Building.


def build(folder: Path, *, border: str | None = None, **files: str | bytes) -> list[str]:
    """The documents, as text, of a store that is built from files; their names' last _ stands for a dot."""
    paths = []
    for name, content in files.items():
        paths.append(folder / ".".join(name.rsplit("_", 1)))
        paths[-1].write_bytes(content.encode() if isinstance(content, str) else content)
    build_store(paths, TOY, folder / "store", border=border)
    return [TOY.tokenizer.decode(ids) for ids in stored(folder / "store")]


def test_a_text_file_is_a_document(tmp_path: Path) -> None:
    """Marks of Windows, blank lines and letters of any script come through; files never join."""
    assert build(tmp_path, a_txt=b"\xef\xbb\xbfHigh tide\r\n\r\nat six", b_md="\n\u00e9\u4e2d\n", c_txt="") == [
        "High tide\n\nat six",
        "\n\u00e9\u4e2d\n",
    ]


def test_a_border_splits_a_text_file(tmp_path: Path) -> None:
    """Documents in one file must not run into each other any more than those of two files."""
    assert build(tmp_path, border="", a_txt="\none\ntwo\n\n \nthree\n\n") == ["one\ntwo\n", "three\n"]
    assert build(tmp_path, border="%%", a_txt="one\n\n%%\ntwo\n%") == ["one\n\n", "two\n%"]


def test_long_texts_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text larger than the memory must come through whole, whether or not it has line ends."""
    monkeypatch.setattr(building, "_PIECE", 20)
    monkeypatch.setattr(building, "_BATCH", 200)
    for text in ("a calm sea\n" * 50, "a calm sea " * 50, "\u4e2d" * 500):
        assert build(tmp_path, a_txt=text) == [text]
        assert build(tmp_path, a_jsonl=json.dumps({"text": text}) + "\n" + json.dumps({"text": "b"})) == [text, "b"]


CHAT = "<|user|>\nHow?\n<|assistant|>\nSo.<|end|>\n"
SHAPES = [
    ({"conversations": [{"from": "human", "value": "How?"}, {"from": "gpt", "value": "So."}]}, CHAT),
    ({"conversations": [{"role": "user", "content": "How?"}, {"role": "assistant", "content": "So."}]}, CHAT),
    ({"messages": [{"role": "user", "content": "How?"}, {"role": "assistant", "content": "So."}], "text": None}, CHAT),
    ({"conversation": [{"from": "human", "value": "How?"}, {"from": "chatgpt", "value": "So."}]}, CHAT),
    ({"messages": ["How?", "So."]}, CHAT),
    ({"turns": [{"role": "user", "content": "How?"}, {"role": "assistant", "content": "So."}]}, CHAT),
    ({"question_id": 1, "turns": ["How?"], "reference": ["So."]}, CHAT),
    ({"question_id": 1, "turns": ["How?"], "reference": [["So.", "Thus."]]}, CHAT),
    ({"prompt": "How?", "completion": "So."}, CHAT),
    ({"prompt": "How?", "response": "So.", "score": 1}, CHAT),
    ({"prompt": "How?", "answer": "So.", "text": "How? So."}, CHAT),
    ({"prompt": "How?", "answer": None, "output": "So."}, CHAT),
    ({"prompt": "Tell me how.", "text": "How? So."}, "How? So."),
    ({"text": "How? So."}, "How? So."),
]


@pytest.mark.parametrize(("line", "text"), SHAPES, ids=range(len(SHAPES)))
def test_the_common_shapes_of_conversations(line: dict[str, Any], text: str, tmp_path: Path) -> None:
    """A conversation is stored as the model is shown one, with the marks of its own template."""
    content = f"\n{json.dumps(line)}\n\n{json.dumps(line)}"
    assert build(tmp_path, a_jsonl=content) == [text, text]
    (trained, _) = read_conversations(tmp_path / "a.jsonl", lambda what, share: None)  # which must mean the same by it
    assert trained == (Conversation(("How?",), ("So.",)) if text == CHAT else Conversation(text=text))


def test_questions_are_the_users(tmp_path: Path) -> None:
    """Several turns are asked one after the other; answers that cannot be told apart are left out, as in training."""
    lines = [{"turns": ["How?", "And?"], "reference": reference} for reference in (["So.", "Thus."], ["So."], None)]
    lines.append({"prompt": "How?"})
    content = "\n".join(map(json.dumps, lines))
    chats = [[("How?", "user"), ("And?", "user")]] * 2 + [[("How?", "user")]]
    chats.insert(0, [("How?", "user"), ("So.", "assistant"), ("And?", "user"), ("Thus.", "assistant")])
    wanted = [
        TOY.tokenizer.apply_chat_template([{"role": role, "content": text} for text, role in chat], tokenize=False)
        for chat in chats
    ]
    assert build(tmp_path, a_jsonl=content) == wanted
    trained = read_conversations(tmp_path / "a.jsonl", lambda what, share: None)
    asked = ("How?", "And?")
    assert trained == [Conversation(asked, ("So.", "Thus.")), *[Conversation(asked)] * 2, Conversation(("How?",))]


def test_a_template_that_refuses_leaves_the_plain_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many templates refuse conversations that begin with the assistant, and data sets hold thousands of those."""
    for template in ("{{ raise_exception('user first') }}", None):
        monkeypatch.setattr(TOY.tokenizer, "chat_template", template)
        assert build(tmp_path, a_jsonl=json.dumps({"messages": ["How?", "So."]})) == ["How?\nSo."]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON at character 2"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"{}", 'holds none of "messages"'),
        (b'{"text": 5}', "text must be a text"),
        (b'{"messages": "a"}', "messages must be a list of messages"),
        (b'{"messages": [5]}', "every message of messages must have a role and a content"),
        (b'{"messages": [{"role": "user"}]}', "the content of a message of messages must be a text"),
        (b'{"messages": [{"role": 1, "content": "a"}]}', "must have a role and a content"),
        (b'{"turns": [["a"]]}', "every turn must be a text"),
        (b'{"turns": ["a"], "reference": 5}', "must be lists of texts"),
        (b'{"prompt": ["a"], "completion": "b"}', "prompt must be a text"),
    ],
)
def test_a_malformed_line_is_named(line: bytes, reason: str, tmp_path: Path) -> None:
    """In a file of a million lines, only its number helps; and a store that was there before must survive."""
    (tmp_path / "store").write_text("old")
    with pytest.raises(ParamError, match=rf"a\.jsonl, line 3: .*{reason}"):
        build(tmp_path, a_jsonl=b'{"text": "a"}\n\n' + line)
    assert (tmp_path / "store").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "store"]


def test_half_a_character_becomes_a_question_mark(tmp_path: Path) -> None:
    """JSON can hold lone surrogates, which no tokenizer takes."""
    assert build(tmp_path, a_jsonl=b'{"text": "a\\ud800b"}') == ["a?b"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a_txt": b"\xff\xfe"}, "'a.txt' is no text: save it as UTF-8"),
        ({"a_txt": b"a\0b"}, "'a.txt' is no text: save it as UTF-8"),
        ({"a_json": "[]"}, "let the name end in .jsonl"),
        ({"a_txt": ""}, "there is no text"),
        ({"a_jsonl": "\n"}, "there is no text"),
        ({"_store": "a"}, "to be read and replaced at once"),
    ],
    ids=str,
)
def test_files_that_cannot_be_built_from(files: dict[str, Any], reason: str, tmp_path: Path) -> None:
    if "_store" in files:
        (tmp_path / "store").write_text("a")
        with pytest.raises(ParamError, match=reason):
            build_store([tmp_path / "store"], TOY, tmp_path / "store")
        return
    with pytest.raises(ParamError, match=reason):
        build(tmp_path, **files)
    assert not (tmp_path / "store").exists()


def test_a_piece_of_a_long_line_is_no_border(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines are read in pieces, and one of them may happen to read as the border does."""
    monkeypatch.setattr(building, "_PIECE", 4)
    assert build(tmp_path, a_txt="abcd--\n--  f\n--\ngh\n--", border="--") == ["abcd--\n--  f\n", "gh\n"]


def test_a_missing_file_or_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match=r"there is no file .*missing\.txt"):
        build_store([tmp_path / "missing.txt"], TOY, tmp_path / "store")
    with pytest.raises(ParamError, match="no tokenizer"):
        build_store([], Codec(), tmp_path / "store")


def test_building_tells_how_it_goes_on(tmp_path: Path) -> None:
    """A bar that runs backwards or beyond its end looks broken."""
    heard = list[tuple[str, float]]()
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a calm sea\n" * 20_000)
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    build_store(files, TOY, tmp_path / "store", progress=lambda what, share: heard.append((what, share)))
    shares = [share for _, share in heard]
    assert shares == sorted(shares) and 0.0 < shares[0] < shares[-1] == 1.0
    assert {what for what, _ in heard} == {"storing a.txt", "storing b.txt"}
