"""Ends a run at its token budget, the end of the text, or a stop string, even in the middle of accepted guesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]


class Stops:
    """Cuts each step's tokens where decoding one at a time would have stopped."""

    def __init__(self, budget: int, end_tokens: frozenset[int], strings: tuple[str, ...], decode: Decode) -> None:
        self.left = budget  # tokens
        self._end_tokens = end_tokens
        self._strings = strings
        self._decode = decode
        # A stop string of b bytes spans at most b tokens that print; 16 more allow for tokens that print nothing.
        self._reach = max((len(text.encode(errors="surrogatepass")) for text in strings), default=0) + 16
        self._tail: list[int] = []

    def cut(self, emitted: Sequence[int]) -> tuple[tuple[int, ...], str | None]:
        """Return the tokens up to the end of the run, and why it ends, or None."""
        cut: list[int] = []
        for token in emitted:
            cut.append(token)
            self.left -= 1
            if token in self._end_tokens:
                return tuple(cut), "end_of_text"
            if self._strings and self._meets_string(token):
                return tuple(cut), "stop"
            if self.left == 0:
                return tuple(cut), "length"
        return tuple(cut), None

    def _meets_string(self, token: int) -> bool:
        self._tail = [*self._tail, token][-self._reach :]
        written = self._decode(self._tail)
        return any(text in written for text in self._strings)


def trim(text: str, strings: tuple[str, ...]) -> str:
    """Return the text before the first stop string."""
    ends = [text.find(string) for string in strings if string in text]
    return text[: min(ends)] if ends else text
