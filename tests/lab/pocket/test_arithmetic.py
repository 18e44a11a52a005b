"""The kind `arithmetic`: every sum is true, and the checker takes each wording of the right steps, and no others."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from lab.pocket.language.arithmetic import AnswerMeaning, Operation, make, read_answer, right, write_answer
from lab.pocket.language.sample import Turn

SEEDS = range(500)
SUM = re.compile(r"[0-9]+(?: [-+*] [0-9]+)+ = [0-9]+")
PROMPT = "Ada has 47 shells. First, Ada finds 38 shells. Then Ada sells 26 shells. How many shells does Ada have now?"
ANSWER = (
    "Let us work it out step by step.\n"
    "First, 47 + 38: 7 + 8 = 15, write 5, carry 1; 4 + 3 + 1 = 8, so there are 85 shells.\n"
    "Then, 85 - 26: 5 - 6 borrows 1, 15 - 6 = 9, write 9; 8 - 2 - 1 = 5, so we have 59 shells.\n"
    "So Ada has 59 shells. Ada smiles and goes home. Remember a kind morning by the sea."
)


def turn(seed: int) -> Turn:
    return make(Random(seed)).turns[0]


def meaning_of(answer: str) -> AnswerMeaning:
    meaning = read_answer(answer)
    assert meaning is not None, answer
    return meaning


def value(text: str) -> int:
    """Return what the left side of a sum is worth: multiplication first, then from left to right."""
    total = 0
    for term in re.split(r" (?=[-+] )", text):
        product = 1
        for factor in term.lstrip("+- ").split(" * "):
            product *= int(factor)
        total += -product if term[0] == "-" else product
    return total


def test_answers_are_right_and_so_are_their_paraphrases() -> None:
    different = 0
    for seed in SEEDS:
        one = turn(seed)
        assert right(one.prompt, one.answer, one.answer), one
        other = write_answer(Random(seed + 1), meaning_of(one.answer))
        different += one.answer != other
        assert right(one.prompt, other, one.answer) and right(one.prompt, f"\n {other} \n", one.answer), other
    assert different > 0.99 * len(SEEDS)


def test_every_sum_is_true_and_small() -> None:
    for seed in SEEDS:
        answer = turn(seed).answer
        sums = SUM.findall(answer)
        assert len(sums) == answer.count("=") == 4
        for text in sums:
            left, result = text.split(" = ")
            numbers = [int(number) for number in re.findall("[0-9]+", left)]
            assert value(left) == int(result) < 46 and max(numbers) < 20 and len(numbers) < 4


def test_stories_fit_their_steps() -> None:
    """The numbers of the story are those of the steps, in their order; every result has two digits."""
    shapes: Counter[str] = Counter()
    for seed in SEEDS:
        one = turn(seed)
        meaning = meaning_of(one.answer)
        first, second = meaning.steps
        got = [int(number) for number in re.findall("[0-9]+", one.prompt)]
        assert got == [first.a, first.b, second.b] and second.a == first.result
        assert 10 <= first.result <= 99 and 10 <= second.result <= 99
        assert meaning.things in one.prompt and meaning.owner in one.prompt
        shapes[first.op + second.op] += 1
    assert len(shapes) == 6 and max(shapes.values()) < 0.35 * len(SEEDS)


def test_verbs_tell_the_operations() -> None:
    verbs: dict[str, set[str]] = {"+": set(), "-": set()}
    for seed in SEEDS:
        one = turn(seed)
        events = re.findall(r"(?:First,|At first|Then|Later) [A-Z][a-z]+ ([a-z ]+) [0-9]+ ", one.prompt)
        ops = [step.op for step in meaning_of(one.answer).steps if step.op != "*"]
        for verb, op in zip(events, ops, strict=True):
            verbs[op].add(verb)
    assert not verbs["+"] & verbs["-"] and all(verbs.values())


def test_another_number_is_wrong() -> None:
    for seed in SEEDS[:100]:
        one, rng = turn(seed), Random(seed)
        for found in re.finditer("[0-9]", one.answer):
            digit = str((int(found[0]) + rng.randint(1, 9)) % 10)
            changed = one.answer[: found.start()] + digit + one.answer[found.end() :]
            assert not right(one.prompt, changed, one.answer), changed


def test_another_name_or_thing_is_wrong(everything: bool) -> None:
    for seed in SEEDS if everything else SEEDS[:100]:
        one = turn(seed)
        meaning = meaning_of(one.answer)
        for word, other in ((meaning.owner, "Quentin"), (meaning.things, "melons")):
            for place in re.finditer(rf"\b{word}\b", one.answer):
                changed = one.answer[: place.start()] + other + one.answer[place.end() :]
                assert not right(one.prompt, changed, one.answer), changed
            everywhere = one.answer.replace(word, other)
            assert not right(one.prompt, everywhere, one.answer)
        assert not right("Quentin has 47 shells.", one.answer, one.answer)


def test_a_lost_or_doubled_part_is_wrong(everything: bool) -> None:
    for seed in SEEDS if everything else SEEDS[:100]:
        one = turn(seed)
        lines = one.answer.split("\n")
        steps = [place for place, line in enumerate(lines) if "=" in line]
        end = re.search(r"has [0-9]+ [a-z]+", one.answer)
        assert end is not None
        wrong = ["", one.answer[: seed % end.end()], one.answer[: end.end()]]
        wrong += [f"{one.answer} So it is.", f"{one.answer}\n{lines[-1]}"]
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


def test_steps_that_do_not_follow_each_other_are_wrong() -> None:
    """Each line is true by itself, but the second does not go on from the first."""
    steps = (Operation(47, "+", 38), Operation(84, "-", 26))
    assert read_answer(write_answer(Random(1), AnswerMeaning(steps, "Ada", "shells"))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Let us work", "Let me work"),
        ("step.\nFirst", "step. First"),
        ("First,", "Then,"),
        ("First,", "Last,"),
        ("47 + 38", "38 + 47"),
        ("carry 1", "carry 0"),
        ("write 5, ", ""),
        ("5 - 6 borrows 1, ", ""),
        ("8 - 2 - 1 = 5", "8 - 1 - 2 = 5"),
        ("so we have 59", "so we have 59 of"),
        ("So Ada has", "So Bruno has"),
        ("So Ada has", "So Ada have"),
        ("59 shells. Ada", "59 stones. Ada"),
        ("Ada smiles", "Bruno smiles"),
        ("goes home.", "goes home"),
        ("goes home.", "goes home. Ada smiles and goes home."),
        ("85 shells", "085 shells"),
        ("sea.", "sea. Remember a kind morning by the sea."),
    ],
)
def test_one_change_is_found(old: str, new: str) -> None:
    assert right(PROMPT, ANSWER, ANSWER) and old in ANSWER
    assert not right(PROMPT, ANSWER.replace(old, new, 1), ANSWER)


def test_hostile_answers_are_only_wrong() -> None:
    texts = ["\0", "\n" * 9_000, "First, " * 9_000, "9" * 100_000, ANSWER + "\u0661", "\u0130\n\ud800", "(" * 5_000]
    texts += ["So", ANSWER.replace("7", "\u0667"), ANSWER.replace("\n", "\r\n"), ANSWER + "\n\0"]
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
    """A word, a mark, a digit or the space before a digit counts as a token; the model sees 256 at once."""
    token = re.compile(r"[A-Za-z]+|[^A-Za-z ]| (?=[0-9])")
    lengths = [len(token.findall(turn(seed).answer)) for seed in SEEDS]
    totals = [len(token.findall(turn(seed).prompt)) + length for seed, length in zip(SEEDS, lengths, strict=True)]
    assert min(lengths) > 90 and sum(lengths) / len(lengths) < 145 and max(totals) < 215
