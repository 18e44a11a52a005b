"""What a student writes into docs/lab_speculation.ipynb, by task: each replaces the cell's `...` in turn."""

SOLVED: dict[str, tuple[str, ...]] = {
    "task-0": ("1.2", "0.5", "1.5", "1.2", "3"),
    "task-1": (
        """times = {rows: [] for rows in ROWS}
    for _ in range(ROUNDS):
        for rows in ROWS:
            times[rows].append(pass_ms(engine, rows))
    medians = {rows: sorted(each)[len(each) // 2] for rows, each in times.items()}
    return {rows: median / medians[1] for rows, median in medians.items()}""",
    ),
    "task-2": (
        "return u * q[token] < p[token]",
        """rest = [max(0.0, a - b) for a, b in zip(p, q)]
    return [each / sum(rest) for each in rest]""",
    ),
    "task-3": (
        """for _ in range(self.gamma):
            chain.draw(read(chain.tokens))
            if chain.ended:
                break""",
    ),
    "task-4": (
        """turn = engine.as_turn(prompt)
    return {gamma: engine.generate(turn, Mine, {"gamma": gamma}, None, NEW_TOKENS) for gamma in GAMMAS}""",
        """kept = sum(step.accepted for step in run.trace.steps)
    tested = kept + sum(step.accepted < step.drafted for step in run.trace.steps)
    return kept / tested""",
    ),
    "task-5": (
        "return sum(alpha**depth for depth in range(gamma + 1))",
        "return expected_tokens(gamma, alpha) / (c + d)",
    ),
    "task-6": ("sorted(table, key=lambda name: -table[name][0] / sum(table[name][1:]))",),
}
