"""The topics of small talk, as tables of words, and its wordings: the user's phrases and the answers'."""

from __future__ import annotations

from .phrases import grammar
from .words import PEOPLE, listed

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
# Causes as the user tells them, and as the answer says them back.
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
TABLES: dict[str, tuple[str, ...]] = {
    "name": PEOPLE,
    "hobby": tuple(THINGS),
    "kind": KINDS,
    "feature": FEATURES,
    "plan": PLANS,
    "relative": RELATIVES,
    "when": TIMES,
    "glad": GLAD,
    "good": tuple(GOOD_CAUSES),
    "sad": SAD,
    "bad": tuple(BAD_CAUSES),
    "pet": PETS,
    "coat": COATS,
    "petname": PET_NAMES,
    "food": FOODS,
    "side": SIDES,
    "want": tuple(IDEAS),
    "occasion": OCCASIONS,
    "subject": tuple(SUBJECTS),
}

_USER = {
    "me": "my name is {name}",
    "hello": "[Hello*5|Hi*3|Good morning*2][! <Me>*5|, <me>*5].",
    "lead": "[*6|Thank you. *2|I see. *2]",
    "say_hobby": "My [*6|favourite *4]hobby is {hobby}.",
    "say_place": "I live in {place}, a {kind} near the {feature}.",
    "say_plan": "I want to {plan} with my {relative} {when}.",
    "say_joy": "[I am*6|Today I am*4] {glad} because {good}.",
    "say_gloom": "[I am*6|Today I am*4] {sad} because {bad}.",
    "say_pet": "[I*6|We*4] have a {coat} {pet} called {petname}.",
    "say_food": "I like to eat {food} with {side}[*6| for dinner*4].",
    "ask_idea": "[Can you suggest {want} for {occasion}?*6|I would like {want} for {occasion}.*4]",
    "ask_view": "[What do you think of*5|Do you like*5] {subject}?",
    "say": "[<say_hobby>|<say_place>|<say_plan>|<say_joy>|<say_gloom>|<say_pet>|<say_food>]",
    "turn": "[<hello> |<lead>][<say>|<say> <say>|<ask_idea>|<ask_view>]",
}
_QUESTIONS = {
    "name": "what is my name",
    "hobby": "what is my hobby",
    "place": "where do I live",
    "plan": "what do I want to do",
    "joy": "how do I feel",
    "gloom": "how do I feel",
    "pet": "what is my pet called",
    "food": "what do I like to eat",
}
_OPEN = {
    "nice": "[nice*6|great*5|lovely*4|wonderful*3|fantastic*2|delightful*2]",
    "open_name": "[Hello, {name}! It is [nice*5|good*3|great*2] to meet you.*5|Nice to meet you, {name}[!*6|.*4]*3"
    "|Welcome, {name}!*2]",
    "open_good": "[That sounds <nice>[.*6|!*4]*5|How <nice>!*3|Thank you for telling me.*2]",
    "open_bad": "[I am [*5|so *3|very *2]sorry[*5| to hear that*5].*6|Oh no, that sounds hard.*4]",
    "open_idea": "[Of course!*4|Sure!*3|I have an idea[.*6|!*4]*3]",
    "open_view": "[Good question!*5|Let me think.*3|That is a good question.*2]",
    "open_recall": "[Of course!*5|Yes, I remember.*3|Sure!*2]",
}
_NEWS = {
    "people": "[Many*5|Most*3|Some*2] people [like*6|love*4]",
    "think": "[think*6|believe*4]",
    "on_hobby": "[{Hobby} is a <nice> hobby*5|I <think> {hobby} is [relaxing*4|fun*4|good for you*2|good for the"
    " mind*2]*3|<people> {hobby} because of the {thing}*2].",
    "end_hobby": "[When did you [start*6|begin*4] {hobby}?*4|Do you prefer {hobby} alone or with friends?*3|I hope you"
    " find time for {hobby} [this week*4|soon*3|today*2|at the weekend*2].*3]",
    "scenic": "[lovely*5|pretty*4|charming*3|beautiful*2|pleasant*2]",
    "on_place": "[{place} sounds like a <scenic> {kind}*5|A {kind} near the {feature} must be <scenic>*3|I would like"
    " to visit {place} one day*2].",
    "end_place": "[Do you often go to the {feature}?*4|What do you [like*6|enjoy*4] most about {place}?*4|Have you"
    " always lived in {place}?*2]",
    "on_plan": "[It will be <nice> to {plan} with your {relative} {when}*4|It is a <nice> idea to {plan} {when}*3|I"
    " <think> your {relative} will [enjoy*5|love*3|like*2] it*3].",
    "end_plan": "[[Have fun*6|Enjoy your time*4] with your {relative}!*4|I hope you [have fun*6|have a <nice>"
    " time*4].*4|What will you do after that?*2]",
    "on_joy": "[I am [glad*5|happy*3|pleased*2]*6|It is <nice>*4] that {you_good}.",
    "end_joy": "[I hope you stay {glad} [all day*5|all week*3|for a long time*2].*4|Enjoy [the day*4|the moment*3"
    "|every minute*2]!*3|What will you do [today*6|now*4]?*3]",
    "on_gloom": "[I understand that you are {sad} because {you_bad}*6|No wonder you are {sad} if {you_bad}*4].",
    "end_gloom": "[[Perhaps|Maybe] [a cup of tea*5|a short walk*3|some music*2|a warm bath*2|a good book*2] will"
    " help[*6| a little*4].*5|I hope [tomorrow*6|the evening*4] will be better.*3|Would you like to [talk about it*6"
    "|tell me more*4]?*2]",
    "on_pet": "[{petname} is a <nice> name for a {pet}*5|A {coat} {pet} must be <nice> company*3|I [imagine*6|can"
    " imagine*4] {petname} [resting in the sun*5|playing in the garden*3|waiting by the door*2]*2].",
    "end_pet": "[How old is {petname}?*4|What does {petname} like to [eat*6|do*4]?*3|Give {petname} a hug from me[.*6"
    "|!*4]*3]",
    "tasty": "[delicious*5|tasty*3|wonderful*2|lovely*2|very good*2]",
    "on_food": "[{Food} with {side} [sound*6|must be*4] <tasty>*5|I <think> {food} with {side} are <tasty>*3|<people>"
    " {food} with {side}*2].",
    "end_food": "[Do you cook the {food} yourself?*4|Enjoy your {food}!*4|Who makes the best {food} you know?*2]",
}
_ASKED = {
    "on_idea": "[For {occasion}, I [suggest*5|would suggest*3|recommend*2] {idea}*4|You [could*6|might*4] try {idea}*4"
    "|{Idea} would be <nice> for {occasion}*2].[*6| If you do not like that, try {other}.*4]",
    "end_idea": "[Does that [help*6|sound good*4]?*4|Would you like another idea?*3|I hope that helps[.*6|!*4]*3]",
    "on_view": "[I [like*5|love*3|enjoy*2] {subject}, because it is {mild}*4|I think {subject} is [*5|very *3|quite"
    " *2]{mild}*3|{Subject} is too {harsh} for me*3].",
    "end_view": "[How about you?*5|What is your view?*3|What do your friends think?*2]",
}
# What is recalled follows the same words as where it was said first.
_RECALL = {
    "said": "[You [said*5|told me*3|mentioned*2] [*6|earlier *4]that*8|As you said,*2]",
    "fact_name": "<said> your name is {name}.",
    "fact_hobby": "<said> your hobby is {hobby}.",
    "fact_place": "<said> you live in {place}.",
    "fact_plan": "<said> you want to {plan} with your {relative} {when}.",
    "fact_joy": "<said> you are {glad} because {you_good}.",
    "fact_gloom": "<said> you are {sad} because {you_bad}.",
    "fact_pet": "<said> you have a {coat} {pet} called {petname}.",
    "fact_food": "<said> you like to eat {food} with {side}.",
    "end_recall": "[Can I help you with [something*6|anything*4] else?*4|Did I get that right?*3|Ask me again [at any"
    " time*6|whenever you like*4].*2|What else would you like to [know*6|talk about*4]?*2]",
}
# A thought that fits anywhere: chat's free talk, and most of the choice in it.
_ASIDE = {
    "who": "[I always say that*4|I often think that*4|It seems to me that*3|People say that*3|My neighbour says that*2"
    "|I once read that*2|A friend told me that*2]",
    "calm": "[quiet*4|slow*3|warm*3|bright*2|rainy*2|long*2|simple*1|sunny*1]",
    "hour": "[morning*4|evening*4|walk*3|day*3|song*2|meal*2|story*1|winter*1]",
    "folk": "[people*5|friends*4|children*3|us all*2|old people*1|a town*1]",
    "mood": "[happy*4|calm*4|kind*3|cheerful*2|strong*2|wise*1|young*1]",
    "treat": "[a cup of tea*4|fresh bread*3|a good story*3|an old song*2|a clear sky*2|a long walk*2|a kind word*1|warm"
    " soup*1]",
    "where": "[in the morning*4|after dinner*3|by the fire*3|with friends*3|on a rainy day*2|at the end of the day*2|in"
    " winter*1|under a tree*1]",
    "aside": "<who> [a <calm> <hour> [makes*6|keeps*4] <folk> <mood>*6|nothing is [better*5|nicer*3|sweeter*2] than"
    " <treat> <where>*4].",
}


def _questions() -> dict[str, str]:
    rules = {}
    for topic, question in _QUESTIONS.items():
        rules[f"ask_{topic}"] = question
        rules[f"question_{topic}"] = f"<lead>[<Ask_{topic}>*6|By the way, <ask_{topic}>*4]?"
    return rules


RULES = grammar(_USER | _questions() | _OPEN | _NEWS | _ASKED | _RECALL | _ASIDE)
RECALLED = tuple(_QUESTIONS)
