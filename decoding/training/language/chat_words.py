"""What small talk is about: tables of hobbies, places, plans, moods, pets, food, ideas and subjects."""

from __future__ import annotations

from .words import listed

THINGS = {
    "painting": ("colours", "brushes", "pictures"),
    "baking": ("cakes", "pies", "spices"),
    "reading": ("stories", "poems", "books"),
    "swimming": ("waves", "lakes", "pools"),
    "cycling": ("roads", "hills", "bridges"),
    "gardening": ("roses", "herbs", "trees"),
    "singing": ("songs", "voices", "concerts"),
    "dancing": ("songs", "steps", "shoes"),
    "fishing": ("boats", "lakes", "nets"),
    "sewing": ("colours", "needles", "dresses"),
    "hiking": ("hills", "paths", "boots"),
    "drawing": ("pencils", "faces", "pictures"),
    "running": ("paths", "roads", "shoes"),
    "sailing": ("boats", "waves", "islands"),
    "cooking": ("soups", "spices", "herbs"),
    "knitting": ("scarves", "socks", "needles"),
}
HOBBIES = tuple(THINGS)
KINDS = ("town", "village", "city", "port", "suburb", "valley")
FEATURES = ("sea", "river", "forest", "lake", "bridge", "hills", "harbour", "meadow")
PLANS = tuple(
    f"{verb} {what}"
    for verb, objects in (
        ("bake", ("a cake", "bread", "a pie")),
        ("paint", ("the kitchen", "a picture", "the fence")),
        ("build", ("a kite", "a boat", "a shelf")),
        ("plant", ("roses", "herbs", "a tree")),
        ("visit", ("a museum", "the market", "a castle")),
        ("clean", ("the kitchen", "the garage", "the windows")),
        ("cook", ("soup", "dinner", "a curry")),
    )
    for what in objects
)
RELATIVES = ("sister", "brother", "mother", "father", "aunt", "uncle", "neighbour", "cousin")
TIMES = ("tomorrow", "tonight", "on Sunday", "on Friday", "next week", "this weekend")
GLAD = ("happy", "cheerful", "proud", "calm", "hopeful", "grateful")
GOOD_CAUSES = {
    "I won a prize": "you won a prize",
    "my exam went well": "your exam went well",
    "I found a new job": "you found a new job",
    "the sun is out": "the sun is out",
    "my friends are here": "your friends are here",
    "I finished my work": "you finished your work",
    "my holiday begins": "your holiday begins",
    "I slept well": "you slept well",
}
SAD = ("sad", "tired", "nervous", "lonely", "worried", "cross")
BAD_CAUSES = {
    "I lost my keys": "you lost your keys",
    "my train was late": "your train was late",
    "it rains all day": "it rains all day",
    "my work is hard": "your work is hard",
    "my best friend is away": "your best friend is away",
    "I slept badly": "you slept badly",
    "my phone is broken": "your phone is broken",
    "I missed the bus": "you missed the bus",
}
PETS = ("dog", "cat", "rabbit", "parrot", "pony", "hamster", "tortoise", "duck")
COATS = ("white", "black", "brown", "grey", "little", "big", "young", "spotted")
PET_NAMES = listed(
    """Biscuit Pepper Ginger Pickle Button Cocoa Daisy Fudge Hazel Honey Lucky Marble Misty Muffin Noodle Olive
    Peanut Pebble Poppy Rusty Shadow Sunny Toffee Waffle"""
)
FOODS = ("pancakes", "dumplings", "noodles", "beans", "potatoes", "waffles", "mushrooms", "carrots")
SIDES = ("honey", "butter", "cheese", "garlic", "lemon", "cream", "jam", "herbs")
IDEAS = {
    "a game": ("chess", "a card game", "a puzzle", "a quiz", "tag", "a guessing game"),
    "a meal": ("a thick soup", "a bowl of noodles", "a curry", "fresh bread", "a pie", "a mushroom soup"),
    "a present": ("a warm scarf", "a book of poems", "a box of tea", "a candle", "a rose", "a map of the stars"),
    "a trip": (
        "a walk by the river",
        "a day at the sea",
        "a visit to a castle",
        "a boat ride",
        "a picnic",
        "a long hike",
    ),
    "a book": (
        "a book about stars",
        "a book about ships",
        "a book of poems",
        "a crime story",
        "a love story",
        "a diary",
    ),
}
WANTS = tuple(IDEAS)
OCCASIONS = tuple(
    f"{adjective} {what}"
    for adjective in ("a rainy", "a quiet", "a long", "a cold", "a sunny")
    for what in ("evening", "weekend", "afternoon", "holiday", "birthday")
)
SUBJECTS = listed(
    """winter summer autumn spring rain snow fog wind thunder tea coffee chess music silence moonlight jazz poetry
    football opera chocolate"""
)
