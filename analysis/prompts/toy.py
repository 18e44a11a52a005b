"""Questions for the toy, whose table knows nothing beyond one page of text."""

from .tasks import Task

TASKS = (
    Task(1, "lists", ("On which days is the sea rough?",)),
    Task(2, "instructions", ("How do I cook the soup?", "How do I bake the bread?")),
    Task(3, "coding", ("Write code that lights the lamps.",)),
    Task(4, "stories", ("Tell me a story about a map.", "Tell me a story about a gull.")),
    Task(5, "questions", ("What does the keeper do every evening?", "What does the library lend?")),
    Task(6, "questions", ("When is high tide on Friday?",)),
)
