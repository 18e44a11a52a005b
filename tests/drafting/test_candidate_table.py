"""Token Recycling's table: one row a token, the rows longest without a change make room."""

from __future__ import annotations

from decoding.drafting.candidate_table import CandidateRow, CandidateTable


def row(*entries: int, step: int = 0) -> CandidateRow:
    return CandidateRow(entries, step, "accepted")


def test_a_row_takes_the_place_of_the_one_before() -> None:
    table = CandidateTable()
    assert table.row(3) is None and table.put(3, row(1, 2)) == ()
    assert table.put(3, row(2, 4, step=1)) == (1, 2)
    assert table.row(3) == row(2, 4, step=1) and len(table) == 1


def test_the_row_longest_without_a_change_makes_room() -> None:
    """No run, however long or hostile, may fill the memory."""
    table = CandidateTable(largest=3)
    for token in (1, 2, 3):
        table.put(token, row(token))
    table.put(1, row(9))
    table.put(4, row(4))
    assert [token for token in range(5) if table.row(token)] == [1, 3, 4]
    for token in range(100):
        table.put(token, row(token))
    assert len(table) == 3
