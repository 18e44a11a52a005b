"""The panels of all methods: a method's view of a step, as plain JSON for the record and the screen.

A step need not fill every key. A field declared as a tuple is a list at run time, as in a file.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Literal, TypedDict

from ..drafting.candidate_table import RowOrigin
from ..drafting.ngram_pool import Outcome
from ..types import Token

if TYPE_CHECKING:
    from ..drafting.chain import Chain
    from ..drafting.feature_drafter import FeatureDrafter
    from ..drafting.guess_tree import GuessTree

WindowPhase = Literal["prefill", "fill", "steady"]
# Why a drafter stopped; "start": the prompt has not been read, "": it did not stop.
FeatureStop = Literal["start", "budget", "interrupted", ""]
KangarooStop = Literal["start", "budget", "interrupted", "end", "gamma", "unsure", ""]


class JacobiPanel(TypedDict, total=False):
    """An iteration on the block."""

    guesses: list[Token]  # the block as fed
    answers: list[Token]  # the target's choice after the root and after every guess
    settled: int | None  # guesses that were right; None before the target has answered


class LookaheadPool(TypedDict, total=False):
    """The n-grams that the pool learned, and its size now."""

    inserted: list[tuple[Token, list[Token], Outcome]]  # first token, the tokens after it, the outcome
    keys: int  # tokens that have an n-gram
    entries: int  # n-grams


class LookaheadPanel(TypedDict, total=False):
    """The window, the guesses and the pool."""

    phase: WindowPhase
    rows: list[list[Token]]  # the window as fed
    new: list[Token]  # the target's choice at the end of every column
    key: Token  # c
    guesses: list[list[Token]]
    pool: LookaheadPool


class DraftModelPanel(TypedDict, total=False):
    """The drafter's confidence."""

    confidence: list[float]  # the probability of its likeliest token, for every token drafted; empty without threshold
    threshold: float


class PromptLookupPanel(TypedDict, total=False):
    """The match; empty without one."""

    n: int  # tokens that matched
    ending: list[Token]
    copied_from: str  # the first guess's source


class SuffixSide(TypedDict):
    """The best match in one suffix tree."""

    p: int  # tokens of the ending
    count: int  # its earlier occurrences
    score: float
    guesses: int


class SuffixPlace(TypedDict):
    """An earlier occurrence of the ending."""

    answer: int  # 0: in this text; 1: in the latest earlier answer, 2: in the one before it, ...
    place: int  # the position after it
    follows: list[Token]  # the tokens from there on


class SuffixPanel(TypedDict, total=False):
    """The matches in both suffix trees, and where the ending of the better one occurred."""

    local: SuffixSide
    earlier: SuffixSide  # of the global tree
    chosen: Literal["local", "global"]  # missing if neither had guesses
    ending: list[Token]
    places: list[SuffixPlace]  # the latest ones
    answers: int  # remembered earlier ones


class NGrammysRow(TypedDict, total=False):
    """A row: where it comes from, and its tokens."""

    strategy: Literal["context", "bigram", "unigram"]
    count: int  # context: how often it occurs
    place: int  # context: where it occurred last
    rank: int  # bigram, unigram: of its first token
    p: float  # bigram: probability of its first token
    tokens: list[Token]


class NGrammysPanel(TypedDict, total=False):
    """The rows, and the matches that they were copied from."""

    k: int
    w: int
    winner: int | None  # the first row that begins with the accepted tokens; None without any
    query: list[Token]  # the text's last q tokens
    matches: int  # earlier occurrences of the query
    places: list[int]  # the positions after the latest of them
    nodes: int  # of the tree, the root included
    unmerged: int  # of a tree that merges no prefixes
    rows: list[NGrammysRow]


class RecycledRow(TypedDict):
    """A row of the table that guesses were read from."""

    token: Token
    entries: list[Token]
    ago: int  # steps since it was written; 0: by an earlier run or a prompt
    behind: RowOrigin  # the fate of the node that it comes from, or "prompt"


class TokenRecyclingPanel(TypedDict, total=False):
    """The rows that were read, and those that changed."""

    rows: list[RecycledRow]  # in the order of the tree
    # A token, its row before and now, and the fate of its node.
    changed: list[tuple[Token, list[Token], list[Token], Literal["accepted", "rejected"]]]
    known: int  # rows in the table


class MedusaTypical(TypedDict, total=False):
    """The bounds of typical acceptance, if it is used."""

    epsilon: float
    delta: float


class MedusaPanel(TypedDict, total=False):
    """The heads' guesses and their fate."""

    tree: str
    heads: int  # K
    nodes: list[tuple[int, int, bool]]  # of every guess: its head, its rank there, and whether it was accepted
    hits: list[int | None]  # of every emitted token that a head guessed: its rank in the head's list, or None
    typical: MedusaTypical


class KangarooPanel(TypedDict, total=False):
    """The draft of the first layers."""

    exit_layer: int  # l
    eta: float
    confidence: list[float]  # the largest probability where each token was drafted; empty where eta is 0
    stopped: KangarooStop


class FeaturePanel(TypedDict, total=False):
    """The layers that a drafter on the target's features reads, and its confidence."""

    layers: list[int]  # of the target, whose inputs it reads
    products: list[float]  # of every guess, the product of the probabilities along its path
    chances: list[float]  # of every guess, its own probability; in a drawn chain, that of the likeliest token
    made: int  # guesses of the tree before the best of them were kept
    vocabulary: int | None  # tokens that the drafter can draft; None: all
    unsayable: list[Token]  # tokens that the target chose or wrote in this step, which the drafter cannot draft
    stopped: FeatureStop  # why nothing was drafted


def feature_panel(drafter: FeatureDrafter, chain: Chain, tree: GuessTree, stopped: FeatureStop) -> FeaturePanel:
    """Return what the panels of such drafters share, of the chain or the tree that was drafted."""
    best, chances, sayable = tree.best.values(), chain.confidence, drafter.sayable
    products = [guess.product for guess in best] or [*accumulate(chances, mul)]
    return {
        "layers": [*drafter.layers],
        "vocabulary": None if sayable is None else len(sayable),
        "stopped": stopped,
        "products": [round(product, 6) for product in products],
        "chances": [round(guess.chance, 6) for guess in best] or chances,
        "made": len(tree.guesses) or len(chances),
    }


class Eagle3Panel(FeaturePanel, total=False):
    """A drafter that goes on with its own features."""

    agreement: list[float]  # cosines of its own features and the target's: of the root, then of accepted guesses


class DFlashPanel(FeaturePanel, total=False):
    """A drafter of blocks."""

    block: int  # tokens that a whole block guesses
    anchored: bool  # whether the root's row guesses the first of them: then the block has one mask fewer


class OuroborosPool(TypedDict):
    """The pool's size."""

    keys: int  # tokens that have a phrase
    entries: int  # phrases


class OuroborosCounts(TypedDict):
    """Sums over the run so far."""

    prompt: int  # phrases taken from the prompt
    window: int  # phrases learned from the drafter's window
    inspired: int
    refined: int
    draft_accepted: int  # accepted tokens of the drafter
    suffix_accepted: int  # accepted tokens of phrases after its draft
    passes: int  # of the drafter


class OuroborosPanel(TypedDict, total=False):
    """The draft, the phrases after it, and the phrases learned from the target's answers."""

    passes: list[int]  # tokens that each pass of the drafter wrote
    suffixes: list[list[Token]]  # phrases after the draft
    refined: list[list[Token]]  # the same phrases after refinement
    inspired: list[tuple[Token, list[Token], Outcome]]  # first token, the tokens after it, the outcome
    pool: OuroborosPool
    counts: OuroborosCounts


class RestPanel(TypedDict, total=False):
    """The matches, and the most frequent continuations; empty if there was no room for a guess."""

    span: int  # length of the suffix that matched
    ending: list[Token]  # those tokens
    hits: int  # its occurrences
    read: int  # occurrences that were read
    nodes: int  # guesses
    top: list[tuple[list[Token], int]]  # the first guesses, each with its prefix and its count
