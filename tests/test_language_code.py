"""The kind "code": what it writes is right Python with a right result, and its checker tells right from wrong."""

from __future__ import annotations

import ast
import random
import re
import string
import time

import pytest

from decoding.training.language import code, code_checker, code_evaluator, code_reader
from decoding.training.language.code_families import AFTER, OPS

SEEDS = range(400)
PROMPT = "Write a function that adds up the items above 3, and call it with [4, 1, 7]."
GOOD = '''def add_above(items):
    """Keep the items above 3, then add up those."""
    total = 0
    for item in items:
        if item > 3:
            total += item
    return total


print(add_above([4, 1, 7]))  # [4, 7], then 4 + 7 = 11

It prints 11.'''


def judged(answer: str) -> bool:
    return code.right(PROMPT, answer, GOOD)


def turn(seed: int):
    (only,) = code.make(random.Random(seed)).turns
    return only


def asked_for(seed: int):
    chain, argument = code._task(random.Random(seed))
    return [(op.name, given) for op, given in chain], argument


def test_same_seed_same_sample():
    assert all(code.make(random.Random(seed)) == code.make(random.Random(seed)) for seed in range(50))
    assert len({turn(seed).prompt for seed in range(2000)}) == 2000


def test_its_answers_are_right():
    for seed in range(1500):
        only = turn(seed)
        assert code.right(only.prompt, only.answer, only.answer), only.answer
        assert code.parses(only.answer)


def test_paraphrases_are_right():
    for seed in SEEDS:
        rng = random.Random(seed)
        chain, argument = code._task(rng)
        one, other = (code._answer(rng, chain, argument) for _ in range(2))
        assert code.right("", one, other), (one, other)
        assert code.right("", other, one), (one, other)


def test_every_operation_is_written_and_means_what_it_says():
    seen: dict[str, int] = {}
    for seed in range(3000):
        rng = random.Random(seed)
        chain, argument = code._task(rng)
        answer = code._answer(rng, chain, argument)
        read = code_reader.take_apart(answer)
        assert read is not None
        takes = chain[0][0].takes
        told = code_checker.chain_of(read.doc, takes)
        assert told is not None
        assert [(op.name, given) for op, given in told] == [(op.name, given) for op, given in chain]
        if seed < 600:
            for probe in code_checker.PROBES[takes]:
                assert_means(read.function, chain, probe)
        for op, _ in chain:
            seen[op.name] = seen.get(op.name, 0) + 1
    assert len(seen) == len(OPS) >= 50
    assert {name for names in AFTER.values() for name in names} | set(AFTER) <= set(OPS)


def assert_means(function: ast.FunctionDef, chain, probe):
    """The evaluated function gives what the operations' own definitions give."""
    value = probe if len(probe) == 2 else probe[0]
    try:
        for op, given in chain:
            value = op.apply(value, given)
    except (IndexError, ValueError):
        with pytest.raises(code_evaluator.RefusedError):
            code_evaluator.call(function, probe)
    else:
        assert repr(code_evaluator.call(function, probe)) == repr(value)


def test_answers_are_of_a_learnable_length():
    lengths = [len(re.findall(r"[A-Za-z]+|\d|[^\w\s]+|\n", turn(seed).answer)) for seed in SEEDS]
    assert min(lengths) >= 20
    assert max(lengths) <= 190
    assert sum(lengths) / len(lengths) <= 110


def test_another_number_in_the_docstring_or_the_argument_is_wrong():
    for seed in SEEDS:
        only = turn(seed)
        spans = [re.search(r'""".*"""', only.answer), re.search(r"\[[0-9, ]+\](?=\)|\n)", only.answer)]
        for span in filter(None, spans):
            for at in range(*span.span()):
                if only.answer[at].isdigit():
                    wrong = only.answer[:at] + str((int(only.answer[at]) + 1) % 10) + only.answer[at + 1 :]
                    assert not code.right(only.prompt, wrong, only.answer), wrong


def test_another_value_in_the_result_is_wrong():
    for seed in SEEDS:
        only = turn(seed)
        rest = only.answer[only.answer.rindex("print(") :]
        for found in re.finditer(r"\d", rest):
            at = len(only.answer) - len(rest) + found.start()
            wrong = only.answer[:at] + str((int(found[0]) + 1) % 10) + only.answer[at + 1 :]
            assert not code.right(only.prompt, wrong, only.answer), wrong


def test_the_answer_to_another_question_is_wrong():
    for seed in SEEDS:
        one, other = turn(seed), turn(seed + 1)
        asked, asked_next = (asked_for(number) for number in (seed, seed + 1))
        assert code.right(one.prompt, other.answer, one.answer) == (asked == asked_next)


def test_cut_off_or_doubled_answers_are_wrong():
    for seed in range(60):
        only = turn(seed)
        assert not code.right(only.prompt, only.answer + "\n\n" + only.answer, only.answer)
        assert not code.right(only.prompt, only.answer + " It", only.answer)
        assert not code.right(only.prompt, only.answer + "\n\nThe end.", only.answer)
        assert not code.right(only.prompt, "Hello. " + only.answer, only.answer)
        printed = only.answer.rindex("print(")
        for end in range(0, printed, 7):
            assert not code.right(only.prompt, only.answer[:end], only.answer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("item > 3", "item >= 3 - 0 * item or item < 2"),
        ("items above 3", "items above 4"),
        ("items above 3", "items below 3"),
        ("total += item", "total -= item"),
        ("    return total\n", ""),
        ("return total", "return str(total)"),
        ("return total", 'return total\n    "and more"'),
        ("return total", "return 11"),
        ("total = 0", '"a text"\n    total = 0'),
        ("[4, 1, 7])", "[4, 7])"),
        ("[4, 1, 7])", "[4, 1, 7], 2)"),
        ("print(add_above([4, 1, 7]))", "print(11)"),
        ("print(add_above([4, 1, 7]))", "print(other([4, 1, 7]))"),
        ("print(add_above([4, 1, 7]))", "add_above([4, 1, 7])"),
        ("print(add_above([4, 1, 7]))", "print(add_above([4, 1, 7]))\nprint(add_above([4, 1, 7]))"),
        ("4 + 7 = 11", "4 + 7 = 12"),
        ("4 + 7 = 11", "7 + 4 = 11"),
        ("prints 11.", "prints 12."),
        ("prints 11.", "prints 11. It prints 11."),
        ("prints 11.", "prints 11"),
        ("prints 11.", "prints 11. The name item holds the result."),
        ("def add", "Here is a short function that picks the numbers above 4 and then adds up these:\n\ndef add"),
        ("def add_above(items):", "def add_above(items: str):"),
        ("def add_above(items):", "def add_above(items, more):"),
        ("def add_above(items):", "import os\ndef add_above(items):"),
        ('    """Keep the items above 3, then add up those."""\n', ""),
        ("    for item", "    # look at the weather\n    for item"),
        ("    for item", "    # try it\n    for item"),
    ],
)
def test_wrong_edits(old: str, new: str):
    assert old in GOOD
    assert not judged(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add_above", "some_other_name"),
        ("total", "sum_of_it"),
        ("item > 3", "3 < item"),
        ("item > 3", "item >= 4"),
        ("total += item", "total = item + total"),
        ("def add_above(items):", "def add_above(items: list[int]) -> int:"),
        ("\n\nIt prints 11.", ""),
        ("It prints 11.", "It prints 11. The loop goes through each entry in turn."),
        ("It prints 11.", "It prints 11. The name total holds the result."),
        ("def add", "Here is a short function that picks the numbers above 3 and then adds up these:\n\ndef add"),
        ("Keep the items above 3, then add up those", "Simply keep just the values over 3 and then sum up these"),
        ("print(add_above([4, 1, 7]))", "shown = add_above([4, 1, 7])\nprint(shown)"),
        ("print(add_above([4, 1, 7]))", "given = [4, 1, 7]\nprint(add_above(given))"),
    ],
)
def test_right_edits(old: str, new: str):
    assert old in GOOD
    assert judged(GOOD.replace(old, new))


def test_a_result_must_be_told():
    assert judged(GOOD)
    silent = GOOD.replace("  # [4, 7], then 4 + 7 = 11", "")
    assert judged(silent)
    assert not judged(silent.replace("\n\nIt prints 11.", ""))


HOSTILE = (
    "while True:\n        pass",
    "return add_above(items)",
    "return [0] * 10 ** 9",
    "return 9 ** 9 ** 9",
    "for a in items:\n        items.append(a)\n    return 1",
    "x = 'a'\n    for a in range(1000):\n        x = x + x\n    return x",
    "x = [1]\n    for a in range(1000):\n        x = x + x\n    return x",
    "x = [1]\n    for a in range(1000):\n        x.append(x)\n    return x",
    "x = [1]\n    for a in range(90):\n        x = [x, x]\n    return x == x",
    "x = 7\n    for a in range(1000):\n        x = x * x\n    return x",
    "return sum(a for a in range(10 ** 12))",
    "return items.__class__.__mro__",
    "return __import__('os').getcwd()",
    "return (lambda: 1)()",
    "return eval('1')",
    "return 'a'.join(['b' * 900] * 900)",
    "return " + "-" * 900 + "1",
    "return " + "(" * 400 + "1" + ")" * 400,
    "return " + "[" * 90 + "]" * 90,
    "return f'{items:>1000000000}'",
    "return '%1000000000d' % 1",
    "return sorted(items, key=print)",
    "return items[0:1:0]",
    "return max(items, default=print)",
    "items = iter",
    "yield 1",
    "return None",
    "return 1.0",
    "return range(1, 3)",
    "return 1 // 0",
)


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_functions_end_and_are_wrong(body: str):
    answer = f'def add_above(items):\n    """Keep the items above 3, then add up those."""\n    {body}\n\n\n'
    started = time.perf_counter()
    assert not judged(answer + "print(add_above([4, 1, 7]))  # 11")
    assert time.perf_counter() - started < 1
    function = ast.parse(answer).body[0] if len(body) < 400 else None
    if isinstance(function, ast.FunctionDef) and body != "return items[0:1:0]" and "items.append" not in body:
        with pytest.raises(code_evaluator.RefusedError):
            code_evaluator.call(function, ([4, 1, 7],))


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "def ", "print(", "def f(", "\ud800", "é" * 50, "def f():\n" * 500, "a" * 10**6]
)
def test_odd_texts_are_wrong(text: str):
    assert not judged(text)
    assert not code.right(PROMPT, GOOD, text)
    assert not code.parses(text)


def test_random_edits_never_raise_or_hang():
    rng = random.Random(9)
    started = time.perf_counter()
    wrong = 0
    for seed in range(300):
        only = turn(seed)
        text = only.answer
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            piece = rng.choice(
                (rng.choice(string.printable), "", text[at : at + 20], "\ud83d", "(" * 50, "\\", '"""', "#")
            )
            text = text[:at] + piece + text[at + rng.randint(0, 3) :]
        wrong += not code.right(only.prompt, text, only.answer)
        code.parses(text)
    assert wrong > 270
    assert time.perf_counter() - started < 4
