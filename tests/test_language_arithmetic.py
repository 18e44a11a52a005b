"""The kind `arithmetic`: every sum is true, and the checker takes each wording of the right steps, and no others."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from decoding.training.language import arithmetic
from decoding.training.language.arithmetic import make, right
from decoding.training.language.arithmetic_steps import Step, read_answer, write_answer
from decoding.training.language.sample import Turn

SEEDS = range(1500)
SUM = re.compile(r"[0-9]+(?: [-+*] [0-9]+)+ = [0-9]+")
PROMPT = (
    "Ada has 47 shells. Ada finds 38 more shells. Then Ada gives 26 shells to Bruno. How many shells does Ada have?"
)
ANSWER = (
    "First, add 38 to 47: 7 + 8 = 15, write 5 and carry 1; 4 + 3 + 1 = 8, so there are 85 shells.\n"
    "Then, as Ada gives 26 shells, take 26 from 85: 5 is less than 6, so borrow: 15 - 6 = 9; 8 - 1 - 2 = 5, "
    "so there are 59. Good, Ada!\n"
    "So Ada has 59 shells. Ada smiles and goes home."
)


def turn(seed: int) -> Turn:
    return make(Random(seed)).turns[0]


def two_answers(seed: int) -> tuple[str, str, str]:
    """A prompt and two answers that mean the same."""
    rng = Random(seed)
    story = arithmetic._story(rng)
    has = "have" if " and " in story.owner else "has"
    prompt = arithmetic._prompt(rng, story, has)
    about = (story.steps, f"{story.owner} {has}", story.names["t"], story.names["p"])
    return prompt, write_answer(rng, *about), write_answer(rng, *about)


def value(text: str) -> int:
    """What the left side of a sum is worth: multiplication first, then from left to right."""
    total, sign = 0, 1
    for term in re.split(r" (?=[-+] )", text):
        sign, body = (-1 if term[0] == "-" else 1), term.lstrip("+- ")
        product = 1
        for factor in body.split(" * "):
            product *= int(factor)
        total += sign * product
    return total


def test_answers_are_right_and_so_are_their_paraphrases() -> None:
    different = 0
    for seed in SEEDS:
        one = turn(seed)
        assert right(one.prompt, one.answer, one.answer), one
        prompt, first, second = two_answers(seed)
        different += first != second
        assert right(prompt, first, second) and right(prompt, f"\n {second} \n", first), (prompt, first, second)
    assert different == len(SEEDS)


def test_every_sum_is_true_and_small() -> None:
    for seed in SEEDS:
        answer = turn(seed).answer
        sums = SUM.findall(answer)
        assert len(sums) == answer.count("=") >= 2
        for text in sums:
            left, result = text.split(" = ")
            numbers = [int(number) for number in re.findall("[0-9]+", left)]
            assert value(left) == int(result) < 46 and max(numbers) < 20 and len(numbers) < 4


def test_stories_fit_their_steps() -> None:
    """Each step works on what the story tells or on what an earlier step gave; nothing is negative, or over 199."""
    shapes: Counter[tuple[bool, str]] = Counter()
    for seed in SEEDS:
        one = turn(seed)
        meaning = read_answer(one.answer)
        assert meaning is not None and 2 <= len(meaning.steps) <= 3
        known = {int(number) for number in re.findall("[0-9]+", one.prompt)}
        for place, (a, op, b) in enumerate(meaning.steps):
            assert {a, b} <= known
            result = Step(a, op, b).result
            assert 2 <= result <= (199 if place == len(meaning.steps) - 1 else 99)
            known.add(result)
        assert meaning.things in one.prompt and meaning.owner.rsplit(" ", 1)[0].split()[-1] in one.prompt
        shapes[meaning.owner.startswith("the"), "".join(op for _, op, _ in meaning.steps)] += 1
    assert len(shapes) > 24 and max(shapes.values()) < len(SEEDS) / 6


def test_another_number_is_wrong() -> None:
    """Any digit of an answer, changed, makes a false sum or another step."""
    for seed in SEEDS[:300]:
        one, rng = turn(seed), Random(seed)
        for found in re.finditer("[0-9]", one.answer):
            digit = str((int(found[0]) + rng.randint(1, 9)) % 10)
            changed = one.answer[: found.start()] + digit + one.answer[found.end() :]
            assert not right(one.prompt, changed, one.answer), changed


def test_another_name_or_thing_is_wrong() -> None:
    for seed in SEEDS:
        one = turn(seed)
        meaning = read_answer(one.answer)
        assert meaning is not None
        for name in {*meaning.heroes, *re.findall("[A-Z][a-z]+", meaning.owner)}:
            assert not right(one.prompt, re.sub(rf"\b{name}\b", "Quentin", one.answer), one.answer)
            assert not right(one.prompt, re.sub(rf"\b{name}\b(?!.*\b{name}\b)", "Which", one.answer), one.answer)
        other = re.sub(rf"\b{meaning.things}\b", "melons", one.answer)
        assert not right(one.prompt, other, one.answer)


def test_a_lost_or_doubled_part_is_wrong() -> None:
    for seed in SEEDS:
        one = turn(seed)
        lines = one.answer.split("\n")
        steps = [place for place, line in enumerate(lines) if "=" in line]
        end = one.answer.index(".", one.answer.rindex("\n"))  # what follows may be left out
        wrong = [
            "",
            one.answer[: seed % end],
            one.answer[:end],
            f"{one.answer} So it is.",
            f"{one.answer}\n{lines[-1]}",
        ]
        wrong += ["\n".join(lines[:place] + lines[place + 1 :]) for place in (*steps, len(lines) - 1)]
        wrong += ["\n".join(lines[: place + 1] + lines[place:]) for place in range(len(lines))]
        wrong += ["\n".join(reversed(lines)), one.answer.replace(" ", "  ", 1), one.answer.replace("\n", " ")]
        words = one.answer.split(" ")
        place = seed % (len(words) - 1)
        wrong.append(" ".join(words[: place + 1] + words[place:]))
        for text in wrong:
            assert not right(one.prompt, text, one.answer), text


def test_the_answer_to_another_question_is_wrong() -> None:
    for seed in SEEDS:
        one, other = turn(seed), turn(seed + 1)
        assert not right(one.prompt, other.answer, one.answer)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("First,", "Last,"),
        ("add 38 to 47", "add 47 to 38"),
        ("write 5 and carry 1", "no carry"),
        ("so borrow:", "no borrow:"),
        ("Ada gives 26 shells,", "Ada loses 26 shells,"),
        ("Ada gives 26 shells,", "Ada finds 38 more shells,"),
        ("Ada gives 26 shells,", "Ada gives 2 shells,"),
        ("Ada gives 26 shells,", "gives 26 shells,"),
        ("Good, Ada!", "Good, Cleo!"),
        ("Good, Ada!", "Good Ada!"),
        ("So Ada has", "So Bruno has"),
        ("So Ada has", "So Ada have"),
        ("59 shells.", "59 stones."),
        ("goes home.", "goes home"),
        ("goes home.", "goes home. Ada smiles and goes home."),
        ("85 shells", "085 shells"),
        ("so there are 59.", "so there are 59 coins."),
    ],
)
def test_one_change_is_found(old: str, new: str) -> None:
    assert right(PROMPT, ANSWER, ANSWER) and old in ANSWER
    assert not right(PROMPT, ANSWER.replace(old, new, 1), ANSWER)


def test_hostile_answers_are_only_wrong() -> None:
    texts = [
        "\0",
        "\n" * 9_000,
        "First, " * 9_000,
        "9" * 100_000,
        ANSWER + "\u0661",
        "\u0130\n\ud800",
        "So",
        "(" * 5_000,
    ]
    texts += [ANSWER.replace("7", "\u0667"), ANSWER.replace("\n", "\r\n"), "First, as " + "a " * 1_900, ANSWER + "\n\0"]
    rng = Random(5)
    for _ in range(400):
        letters = list(ANSWER)
        for _ in range(rng.randint(1, 4)):
            letters[rng.randrange(len(letters))] = rng.choice("\0 9aZ\n\u00e9")
        texts.append("".join(letters))
    for text in texts:
        assert right(PROMPT, text, ANSWER) is (text == ANSWER)
        assert not right(text, text, text) or text == ANSWER


def test_prompts_hardly_repeat_and_seeds_decide() -> None:
    assert len({turn(seed).prompt for seed in SEEDS}) == len(SEEDS)
    assert [turn(seed) for seed in SEEDS[:50]] == [turn(seed) for seed in SEEDS[:50]]


def test_answers_are_of_a_readable_length() -> None:
    """A word, a mark or a digit counts as a token; the model sees 256 at once."""
    lengths = [len(re.findall(r"[A-Za-z]+|[^A-Za-z ]", turn(seed).answer)) for seed in SEEDS]
    totals = [
        len(re.findall(r"[A-Za-z]+|[^A-Za-z ]", turn(seed).prompt)) + n for seed, n in zip(SEEDS, lengths, strict=True)
    ]
    assert min(lengths) > 25 and sum(lengths) / len(lengths) < 115 and max(totals) < 240
