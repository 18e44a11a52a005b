"""Keeps what a tab's next run reuses: a conversation, and what methods learnt from the tab's texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decoding.codec import Message

from ..controls import Order
from ..models.model_pool import ModelPool
from ..server.limits import LIMITS
from ..store.quota_cache import Quota, QuotaCache

if TYPE_CHECKING:
    from decoding.chat import Chat

AnsweredPrompt = tuple[tuple[Message, ...], str]  # a conversation that ends with the user's message, and the answer


@dataclass(slots=True)
class TabConversation:
    """A tab's conversation, until another one replaces it."""

    exchange: AnsweredPrompt | None = None  # of the last run


class TabMemory:
    """Stores these by tab, within the quotas of each client. An engine serves many visitors: it must not store them."""

    def __init__(self) -> None:
        tabs, tabs_each = Quota(LIMITS.sessions), Quota(LIMITS.sessions_each)
        self._conversations: QuotaCache[TabConversation] = QuotaCache(tabs, tabs_each)
        # The model, and the caches of the conversation's turns.
        self._chats: QuotaCache[tuple[str, Chat]] = QuotaCache(Quota(LIMITS.chats), Quota(LIMITS.chats_each))
        # The model, and what methods learnt with it.
        self._learnt: QuotaCache[tuple[str, dict[str, Any]]] = QuotaCache(tabs, tabs_each)

    def forget(self, tab: str) -> None:
        """Delete everything of a tab."""
        self.end_conversation(tab)
        self._learnt.pop(tab)

    def end_conversation(self, tab: str) -> None:
        """Delete a tab's conversation. A run that still answers in it continues, but its answer is dropped."""
        self._conversations.pop(tab)
        self._chats.pop(tab)

    def conversation(self, tab: str, client: str) -> TabConversation:
        """Return a tab's conversation; it is created for the first run."""
        conversation = self._conversations.get(tab) or TabConversation()
        self._conversations.put(client, tab, conversation)
        return conversation

    def take_exchange(self, tab: str) -> AnsweredPrompt | None:
        """Return the prompt and the answer of a tab's last run, only once."""
        conversation = self._conversations.get(tab)
        if conversation is None:
            return None
        exchange, conversation.exchange = conversation.exchange, None
        return exchange

    def chat(self, tab: str, client: str, order: Order) -> Chat | None:
        """Return the caches of a tab's conversation: new ones for a new conversation, or for another model."""
        if isinstance(order.prompt, str):
            return None
        from decoding.chat import Chat

        model, chat = self._chats.get(tab) or ("", None)
        if chat is None or model != order.entry.name or not any(m["role"] == "assistant" for m in order.prompt):
            chat = Chat()
        self._chats.put(client, tab, (order.entry.name, chat))
        return chat

    def drop_evicted(self, models: ModelPool) -> None:
        """Drop the caches of models that were evicted, which would keep these in memory."""
        for tab, (model, _) in self._chats.items():
            if model not in models:
                self._chats.pop(tab)

    def learnt(self, tab: str, client: str, order: Order) -> dict[str, Any]:
        """Return the memory of methods from a tab's texts with the order's model, which the run extends."""
        model, learnt = self._learnt.get(tab) or ("", dict[str, Any]())
        learnt = learnt if model == order.entry.name else {}
        self._learnt.put(client, tab, (order.entry.name, learnt))
        return learnt
