"""Saves the measurements of paper checks, so that stopped ones resume."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from decoding.errors import ParamError
from decoding.types import JSON

from .claims import ClaimKey
from .experiment import Question, Tally
from .tables import ResultTable


class SavedChecks:
    """Lines of JSON: the conditions, all questions, then tallies and claims' tables as each was finished."""

    def __init__(self, path: Path, conditions: Mapping[str, JSON]) -> None:
        """Read the file, if there is one; it must have been begun under the same conditions."""
        self.path = path
        self.questions: list[Question] = []
        self.tallies: dict[str, Tally] = {}
        self.tables: dict[ClaimKey, ResultTable] = {}
        written = path.read_bytes() if path.exists() else b""
        if not written:
            self._write({"conditions": conditions})
            return
        whole = written[: written.rfind(b"\n") + 1]  # the last line may not have been written to its end
        lines = whole.splitlines()
        advice = "delete it, or name another page with --out"
        try:
            begun = json.loads(lines[0])["conditions"]
            for line in lines[1:]:
                self._take(json.loads(line))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ParamError(f"{path} holds something else than paper checks: {advice}") from None
        if begun != json.loads(json.dumps(conditions)):
            raise ParamError(
                f"{path} holds what was measured with other questions, flags, models or versions: {advice}"
            )
        if len(whole) < len(written):  # only now that the file is known to be ours
            path.write_bytes(whole)

    def keep_questions(self, questions: list[Question]) -> None:
        """Save all questions with their answers."""
        self.questions = questions
        self._write({"questions": [asdict(question) for question in questions]})

    def keep_tally(self, key: str, tally: Tally) -> None:
        """Save the tally of a setting."""
        numbers = {each.name: getattr(tally, each.name) for each in fields(tally)}  # asdict spoils a Counter
        self._write({"setting": key, "tally": numbers})

    def keep_table(self, name: ClaimKey, table: ResultTable) -> None:
        """Save the table of a claim."""
        self._write({"claim": name, "table": asdict(table)})

    def remove(self) -> None:
        """Remove the file: everything is measured, and on the page."""
        self.path.unlink(missing_ok=True)

    def _take(self, entry: dict[str, JSON]) -> None:
        if "questions" in entry:
            self.questions = [
                Question(each["kind"], tuple(each["ids"]), tuple(each["answer"])) for each in entry["questions"]
            ]
        elif "setting" in entry:
            numbers = entry["tally"]
            written = {
                kind: Counter({int(tokens): steps for tokens, steps in counts.items()})
                for kind, counts in numbers.pop("written").items()
            }
            self.tallies[entry["setting"]] = Tally(written, **numbers)
        else:
            paper, title = entry["claim"]
            rows = tuple(map(tuple, entry["table"]["rows"]))
            self.tables[paper, title] = ResultTable(tuple(entry["table"]["heads"]), rows, entry["table"]["facts"])

    def _write(self, entry: Mapping[str, JSON]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
