"""What is measured of a method is what it does on new questions."""

from __future__ import annotations

from analysis.bench.methods import as_prompt, base_entry, measure_entries, method_entry
from analysis.prompts.tasks import Task
from decoding.toy import toy


def test_a_method_that_remembers_has_not_seen_the_answer_before() -> None:
    """Neither in its warm-up nor from another entry, and it leaves nothing behind for the engine's other runs."""
    engine, question = toy(), "Monday, Tuesday"
    prompt = as_prompt(engine, [("user", question)])
    fresh = engine.generate(prompt, "suffix", max_new_tokens=40, memory={}).summary.steps
    entries = [base_entry(engine), method_entry(engine, "suffix", {}), method_entry(engine, "suffix", {})]
    measure_entries(engine, [Task(1, "talk", (question,)), Task(2, "talk", (question,))], entries, 40)
    for entry in entries[1:]:
        first, second = (run.steps for run in entry.runs)
        assert first == fresh and second < fresh  # an answer that was measured is remembered
    assert not engine.memory
