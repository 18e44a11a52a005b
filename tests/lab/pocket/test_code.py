"""The kind "code": what it writes is right Python with a right result, and its checker tells right from wrong."""

from __future__ import annotations

import ast
import random
import re
import string
import time

import pytest

from lab.pocket.language import code, code_checker, code_evaluator, code_reader
from lab.pocket.language.code_operations import OPS

SEEDS = range(200)
PROMPT = (
    "Write a function that takes a list of numbers and returns the sum of the numbers above 3. Call it with [4, 1, 7]."
)
GOOD = '''Here is a short function for this:

def total_above_of(items):
    """Return the sum of the numbers above 3, as asked."""
    result = 0
    for n in items:
        if n > 3:
            result += n
    return result

print(total_above_of([4, 1, 7]))  # [4, 7], 4 + 7 = 11

It prints 11. You can try another list.'''


def judged(answer: str) -> bool:
    return code.right(PROMPT, answer, GOOD)


def turn(seed: int):
    (only,) = code.make(random.Random(seed)).turns
    return only


def test_same_seed_same_sample():
    assert all(code.make(random.Random(seed)) == code.make(random.Random(seed)) for seed in range(50))
    assert len({turn(seed).prompt for seed in range(2000)}) >= 1700


def test_its_answers_are_right():
    for seed in range(500):
        only = turn(seed)
        assert code.right(only.prompt, only.answer, only.answer), only.answer
        assert code.parses(only.answer)


def test_paraphrases_are_right():
    for seed in SEEDS:
        rng = random.Random(seed)
        task = code._task(rng)
        one, other = (code._answer(rng, *task) for _ in range(2))
        assert code.right("", one, other), (one, other)
        assert code.right("", other, one), (one, other)


@pytest.mark.slow
def test_every_operation_is_written_and_means_what_it_says():
    seen: set[tuple[str, int]] = set()
    for seed in range(2000):
        rng = random.Random(seed)
        op, given, argument = code._task(rng)
        answer = code._answer(rng, op, given, argument)
        read = code_reader.take_apart(answer)
        assert read is not None
        assert code_checker._expected(answer) == (op, given, argument)
        if seed < 600:
            for probe in code_checker.PROBES[op.takes]:
                assert_means(read.function, op, given, probe)
        seen.add((op.name, len(ast.unparse(read.function).split("\n"))))
    assert {name for name, _ in seen} == set(OPS)
    assert len(seen) == sum(len(op.bodies) for op in OPS.values())


def assert_means(function: ast.FunctionDef, op, given, probe):
    """Assert that the evaluated function gives what the operation's own definition gives."""
    arguments = probe if isinstance(probe, tuple) else (probe,)
    try:
        value = op.apply(probe, given)
    except (IndexError, ValueError):
        with pytest.raises(code_evaluator.RefusedError):
            code_evaluator.call(function, arguments)
    else:
        assert repr(code_evaluator.call(function, arguments)) == repr(value)


def test_answers_are_of_a_learnable_length():
    lengths = [len(re.findall(r"[A-Za-z]+|\d|[^\w\s]+|\n", turn(seed).answer)) for seed in SEEDS]
    assert min(lengths) >= 40
    assert max(lengths) <= 130
    assert sum(lengths) / len(lengths) <= 90


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
        same = code._task(random.Random(seed)) == code._task(random.Random(seed + 1))
        assert code.right(one.prompt, other.answer, one.answer) == same


def test_cut_off_or_doubled_answers_are_wrong():
    for seed in range(60):
        only = turn(seed)
        assert not code.right(only.prompt, only.answer + "\n\n" + only.answer, only.answer)
        assert not code.right(only.prompt, only.answer + " It", only.answer)
        assert not code.right(only.prompt, only.answer + "\n\nThe end.", only.answer)
        assert not code.right(only.prompt, "Hello. " + only.answer, only.answer)
        for end in range(0, only.answer.rindex("\n\n") + 12, 7):  # what follows the result may be left out
            assert not code.right(only.prompt, only.answer[:end], only.answer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n > 3", "n > 4"),
        ("n > 3", "n < 3"),
        ("above 3", "above 4"),
        ("above 3", "below 3"),
        ("+= n", "-= n"),
        ("    return result\n", ""),
        ("return result", "return str(result)"),
        ("return result", 'return result\n    "and more"'),
        ("return result", "return 11"),
        ("result = 0", '"a text"\n    result = 0'),
        ("[4, 1, 7])", "[4, 7])"),
        ("[4, 1, 7])", "[4, 1, 7], 2)"),
        ("print(total_above_of([4, 1, 7]))", "print(11)"),
        ("print(total_above_of([4, 1, 7]))", "print(other([4, 1, 7]))"),
        ("print(total_above_of([4, 1, 7]))", "total_above_of([4, 1, 7])"),
        ("print(total_above_of([4, 1, 7]))", "shown = total_above_of([4, 1, 7])\nprint(shown)"),
        ("print(total", "print(total_above_of([4, 1, 7]))\nprint(total"),
        ("  # [4, 7], 4 + 7 = 11", ""),
        ("4 + 7 = 11", "4 + 7 = 12"),
        ("4 + 7 = 11", "7 + 4 = 11"),
        ("# [4, 7]", "# [7, 4]"),
        ("# [4, 7], 4 + 7 = 11", "# 11"),
        ("prints 11.", "prints 12."),
        ("prints 11.", "prints 11. It prints 11."),
        ("prints 11.", "prints 11"),
        (" You can try another list.", ""),
        ("It prints 11. ", ""),
        ("another list", "another number"),
        ("Here is a short function for this:\n\n", ""),
        ("for this:", "for this"),
        ("def total_above_of(items):", "def total_above_of(items: list[int]):"),
        ("def total_above_of(items):", "def total_above_of(items) -> int:"),
        ("def total_above_of(items):", "def total_above_of(items, more):"),
        ("def total_above_of(items):", "import os\ndef total_above_of(items):"),
        ('    """Return the sum of the numbers above 3, as asked."""\n', ""),
        ("    for n", "    # look at the weather\n    for n"),
    ],
)
def test_wrong_edits(old: str, new: str):
    assert old in GOOD
    assert not judged(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total_above_of", "some_other_name"),
        ("result", "total"),
        ("n > 3", "3 < n"),
        ("n > 3", "n >= 4"),
        ("result += n", "result = n + result"),
        ("Here is a short function for this:", "Sure, here is my plain script for you."),
        (", as asked.", "."),
        ("It prints 11. You can try another list.", "Running it gives 11. Feel free to use your own list too!"),
    ],
)
def test_right_edits(old: str, new: str):
    assert old in GOOD
    assert judged(GOOD.replace(old, new))


def test_the_unchanged_answer_is_right():
    assert judged(GOOD)


HOSTILE = (
    "while True:\n        pass",
    "return total_above_of(items)",
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
    definition = f'def total_above_of(items):\n    """Return the sum of the numbers above 3, as asked."""\n    {body}\n'
    start, end = GOOD.index("def "), GOOD.index("\nprint")
    started = time.process_time()
    assert not judged(GOOD[:start] + definition + GOOD[end:])
    assert time.process_time() - started < 1
    function = ast.parse(definition).body[0] if len(body) < 400 else None
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
    started = time.process_time()
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
    assert time.process_time() - started < 4
