"""What small talk is about: tables of hobbies, places, plans, moods, pets, food, ideas and subjects."""

from __future__ import annotations

from .words import listed

THINGS = {  # what people like about a hobby
    "painting": "colours",
    "reading": "stories",
    "swimming": "water",
    "gardening": "flowers",
    "singing": "songs",
    "hiking": "hills",
    "baking": "cakes",
    "sailing": "waves",
}
KINDS = ("town", "village", "city")
FEATURES = ("sea", "river", "forest", "lake", "castle", "hills")
PLANS = (
    "bake a cake",
    "paint the kitchen",
    "build a kite",
    "plant roses",
    "visit a museum",
    "clean the house",
    "cook a curry",
    "write a song",
    "watch a film",
    "play chess",
)
RELATIVES = ("sister", "brother", "mother", "father", "aunt", "uncle")
TIMES = ("tomorrow", "on Sunday", "on Friday", "next week", "this weekend")
GLAD = ("happy", "cheerful", "full of joy", "in a good mood")
SAD = ("sad", "upset", "unhappy", "in a bad mood")
# Causes as the user tells them, and as they are told back.
GOOD_CAUSES = {
    "I won a prize": "you won a prize",
    "my exam went well": "your exam went well",
    "I found a new job": "you found a new job",
    "the sun is out": "the sun is out",
    "my friends are here": "your friends are here",
    "I slept well": "you slept well",
}
BAD_CAUSES = {
    "I lost my keys": "you lost your keys",
    "my train was late": "your train was late",
    "my work is hard": "your work is hard",
    "my best friend is away": "your best friend is away",
    "I slept badly": "you slept badly",
    "my phone is broken": "your phone is broken",
}
PETS = ("dog", "cat", "rabbit", "pony", "hamster")
COATS = ("white", "black", "brown", "grey", "little", "young")
PET_NAMES = listed(
    "Biscuit Pepper Ginger Pickle Button Cocoa Daisy Fudge Hazel Honey Lucky Misty Muffin Poppy Rusty Shadow"
)
FOODS = ("potatoes", "noodles", "beans", "mushrooms", "carrots", "dumplings")
SIDES = ("butter", "cheese", "garlic", "herbs", "cream", "lemon")
IDEAS = {
    "a game": ("chess", "a card game", "a puzzle", "a quiz"),
    "a meal": ("a hot soup", "a curry", "a pie", "a salad"),
    "a trip": ("a boat ride", "a picnic", "a bike ride", "a walk by the river"),
    "a book": ("a love story", "a crime story", "a book of poems", "a book about ships"),
}
OCCASIONS = tuple(
    f"{adjective} {time}"
    for adjective in ("a quiet", "a free", "a long", "a sunny")
    for time in ("evening", "weekend", "afternoon")
)
SUBJECTS = {  # what is pleasant about a subject, and what is not
    "winter": ("peaceful", "cold"),
    "summer": ("bright", "hot"),
    "autumn": ("colourful", "windy"),
    "spring": ("fresh", "wet"),
    "snow": ("beautiful", "cold"),
    "tea": ("relaxing", "bitter"),
    "coffee": ("warming", "strong"),
    "jazz": ("lively", "loud"),
    "opera": ("moving", "long"),
    "chess": ("exciting", "slow"),
    "football": ("lively", "rough"),
    "poetry": ("beautiful", "difficult"),
}
