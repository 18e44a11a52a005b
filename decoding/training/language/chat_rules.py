"""How small talk is said: the phrases of the user and those of the answers."""

from __future__ import annotations

from .phrases import grammar

_SHARED = {
    "nice": "[nice|good|lovely|great|fine|sweet|charming|splendid|wonderful|pleasant|delightful|special|beautiful"
    "|fantastic|brilliant|remarkable|superb|grand|terrific|fabulous]",
    "calm": "[calming|cheerful|clever|creative|gentle|healthy|pleasant|rewarding|quiet|relaxing|simple|splendid"
    "|wonderful|bright|beautiful|peaceful|lively|lovely|special|good]",
    "scenic": "[beautiful|calm|charming|cosy|friendly|green|lively|peaceful|pretty|quiet|sunny|windy|bright|cheerful"
    "|lovely|pleasant|special|wonderful|gentle|grand]",
    "tasty": "[tasty|delicious|sweet|warm|filling|rich|simple|wonderful|hard to beat|good for the soul|healthy"
    "|special|lovely|fantastic|splendid]",
    "think": "[think|believe|find|would say|am sure|feel|guess]",
    "hour": "[in the morning|in the evening|at night|at noon|after work|before breakfast|in summer|in winter|in"
    " spring|in autumn|at the weekend|on holiday|after dinner|on a rainy day|on a sunny day|on a long evening]",
    "soon": "[today|tonight|tomorrow|soon|this week|this evening|next week|after work|after dinner|at the weekend]",
    "so": "[so|very|really|truly|quite|rather]",
    "end": "[.*6|!*4]",
}
_USER = {
    "greet": "[Hello*3|Hi*3|Good morning|Good evening|Hey]",
    "me": "[my name is {name}*3|I am {name}*3|I am called {name}|you can call me {name}]",
    "hello": "[<greet>[!*2|.] <Me>.*3|<greet>, <me>.*3|<Me>.]",
    "say_hobby": "[I [like|love|enjoy] {hobby}[| a lot| <hour>| with my friends].*3|My [favourite |]hobby is {hobby}."
    "|I spend a lot of time {hobby}[| <hour>].]",
    "say_place": "[I live in|My home is|I come from|I moved to] {place}, a [small|quiet|busy|pretty] {kind} [by|near]"
    " the {feature}.",
    "say_plan": "[I [want|plan|hope] to {plan} with my {relative} {when}.*3|My {relative} and I [want|plan|hope] to"
    " {plan} {when}.]",
    "say_joy": "I [feel|am] [|<so> ]{glad} [|today |this week ]because {good}.",
    "say_gloom": "I [feel|am] [|<so> |a little ]{sad} [|today |this week ]because {bad}.",
    "say_pet": "[I have|My pet is|We have|I live with] a {coat} {pet} [called|named] {petname}.",
    "say_food": "[My favourite food is|I [love|like] to eat|I [often|always] cook|For dinner I make] {food} with"
    " {side}[| <hour>].",
    "say": "[<say_hobby>*3|<say_place>*3|<say_plan>*3|<say_joy>*1.5|<say_gloom>*1.5|<say_pet>*2|<say_food>*2]",
    "ask_idea": "[[Can you [suggest|recommend]|Do you know|What would be] {want} for {occasion}[| with my"
    " {friend}]?*4|I need {want} for {occasion}[| with my {friend}].]",
    "ask_view": "[What do you think [of|about]|Do you like|How do you feel about|What is your view of] {subject}?[|"
    " My {friend} [loves|hates|likes] it.]",
    "ask_name": "what [is|was] my name{ask_name}",
    "ask_hobby": "[what is my hobby|which hobby do I like]{ask_hobby}",
    "ask_place": "where [do I live|is my home]{ask_place}",
    "ask_plan": "what [do I want to do|is my plan|did I plan]{ask_plan}",
    "ask_mood": "how do I feel[| and why]{ask_mood}",
    "ask_pet": "what is my pet called{ask_pet}",
    "ask_food": "what [is my favourite food|food do I like]{ask_food}",
    "asking": "[By the way, *2|Just to check, |One more thing: |Now tell me, ]",
    "question_name": "[<asking><ask_name>*4|<Ask_name>*6]",
    "question_hobby": "[<asking><ask_hobby>*4|<Ask_hobby>*6]",
    "question_place": "[<asking><ask_place>*4|<Ask_place>*6]",
    "question_plan": "[<asking><ask_plan>*4|<Ask_plan>*6]",
    "question_mood": "[<asking><ask_mood>*4|<Ask_mood>*6]",
    "question_pet": "[<asking><ask_pet>*4|<Ask_pet>*6]",
    "question_food": "[<asking><ask_food>*4|<Ask_food>*6]",
    "question": "[<question_name>|<question_hobby>|<question_place>|<question_plan>|<question_mood>|<question_pet>"
    "|<question_food>]",
    "ask": "[<ask_name>|<ask_hobby>|<ask_place>|<ask_plan>|<ask_mood>|<ask_pet>|<ask_food>]",
}
_OPEN = {
    "open_name": "[[Hello|Hi|Welcome][,|] {name}[|, it is <nice> to [meet|know] you|, I am [glad|happy|delighted] to"
    " meet you|, how <nice> to hear from you]<end>*4|[It is|How] [|<so> ]<nice> to [meet|know] you, {name}<end>*4"
    "|What a [|<so> ]<nice> [name|start], {name}<end>*2]",
    "open_good": "[[That|This|It] [sounds|is] [|<so> ]<nice>[| and <nice>| to me]<end>*5|[How|Oh, how] <nice>[| of"
    " you][| to hear| to know]<end>*2|What a [|<so> ]<nice> thing to [hear|say|share|read|know]<end>*3|Thank you for"
    " [telling me|sharing that|the news|the <nice> news]<end>|I [like|love|enjoy] [that|this|such news][| very much|"
    " a lot]<end>]",
    "open_bad": "[I am [|so |very |really |truly ]sorry[| to hear that| about that| to hear such news]*4|[Oh dear|Oh"
    " no|Oh], that [sounds|is|must be] [|<so> ][hard|sad|bad|awful|rough]*2|That [sounds|is|must be] [|<so> ][hard"
    "|sad|bad|awful|rough]*2|What a [hard|bad|long|rough|sad] [day|time|thing] for you].",
    "open_idea": "[[Of course|Sure|Gladly|Certainly|With pleasure|Yes][.|!|, [let me think|let us see|I can help|here"
    " is [an|one] idea|I have an idea][.|!]*3]*4|[That is a|What a] [|<so> ]<nice> [question|thing to [plan|ask]"
    "|wish]<end>*3]",
    "open_view": "[[That is a|What a] [|<so> ][good|big|fair|hard|tricky|fine|nice|strange|clever] [question|thing to"
    " ask]<end>*3|Let me think[| about that| for a moment| back]<end>*2|[Well|Hm|Oh|I know], [that|it] [depends|is"
    " [hard|easy] to say|is [easy|hard|tricky]|changes with the [weather|day|years]].*2]",
    "open_recall": "[[Of course|Sure|Yes|Certainly|Gladly|With pleasure][.|!|, I [remember|know][| that| it][| well|"
    " very well]<end>*4]*5|I [remember|know] [that|it][| well| very well]<end>*2|Let me think[| back| for a moment|"
    " about that]<end>*2]",
}
_HOBBY = {
    "on_hobby": "[{Hobby} is a [|<so> ]<calm> [hobby|pastime|habit|way to [rest|relax|spend an evening|start the"
    " day]]*3|I <think> [that |]{hobby} is [|<so> ]<calm>[| and [|<so> ]<calm>]*3|[Many|Most|Some|Clever] people"
    " [like|love|enjoy|praise] {hobby} [because of|for] the <nice> {thing}*2|I [know|have heard|have read] that"
    " {hobby} is <nice> for the [mind|heart|hands|soul|body]][|, above all <hour>|, even <hour>].",
    "more_hobby": "[I [imagine|can see|see] you [near|with|among] the [|<nice> ]{thing} <hour>|The {thing} must be ["
    "|<so> ]<nice>[| <hour>]|There is [nothing|little] [like|better than] {hobby} <hour>|[All|Many|Some] beginners"
    " [love|fear|praise] the <nice> {thing}].",
    "end_hobby": "[When did you [start|begin|learn] {hobby}?|Do you [like|prefer|enjoy] {hobby} [alone|with friends"
    "|with music|<hour>*5]?*3|Who [taught you|showed you] {hobby}[| <hour>| first]?|What do you [like|love|enjoy]"
    " [best|most] about {hobby} <hour>?*2|[Have fun|Enjoy yourself|Good luck] with the <nice> {thing}[|"
    " <hour>]<end>*3|I [hope|trust] you find [more |]time for {hobby} <soon><end>*3]",
}
_PLACE = {
    "on_place": "[{place} [sounds like|must be] a [|<so> ]<scenic> {kind} [to live in|to visit <hour>*6|to be"
    " <hour>*3]*3|I would [like|love] to [see|visit|know] {place} [one day|soon|<hour>*6]*2|A {kind} [by|near] the"
    " {feature} [must be|sounds] [|<so> ]<scenic>[| and <scenic>| <hour>]*3|I have [never been to|not seen|only heard"
    " of] {place}, but it [sounds|must be] [|<so> ]<scenic>[| and <scenic>]*2].",
    "more_place": "[I [imagine|think|guess] [that |]the {feature} is [|<so> ]<scenic> <hour>|The <scenic> {feature}"
    " must be a <nice> sight <hour>|[Many|Most|Some] people [dream of|look for] a <scenic> {kind} [by|near] the"
    " {feature}].",
    "end_place": "[Do you [often |]walk [to|by|near] the {feature} <hour>?*3|What do you [like|love|enjoy] [best"
    "|most] about {place} <hour>?*2|Is {place} [busy|quiet|warm|cold|lively|friendly|windy|green] <hour>?*3|Have you"
    " [always lived|lived long] in {place}?|[Enjoy|I hope you enjoy] the <scenic> {feature}[| <hour>]<end>*2]",
}
_PLAN = {
    "on_plan": "[It [will be|must be|sounds|can be] [|<so> ]<nice>[| and <nice>] to {plan} [|with your {relative}"
    " ]{when}*3|To {plan} {when} [is|sounds like|will be] a [|<so> ]<nice> [plan|idea|thing to do|way to relax]*3|[I"
    " <think>|I bet] [that |]your [|<nice> ]{relative} will [love|like|enjoy] [it|the day|the time] when you"
    " {plan}*2].",
    "more_plan": "[Your {relative} [is|must be] [|<so> ][lucky|kind|busy|a <nice> helper]|It is [|<so> ]<nice> to"
    " share [such a plan|the work|the day|an idea]|A plan like that needs [|a lot of |a little ][time|help|luck"
    "|patience|music]].",
    "end_plan": "[I [hope|trust] [that |][you|you and your {relative}|both of you] [have fun|enjoy it|have a [|<so>"
    " ]<nice> [time|day]*4]<end>*4|Have you [ever |]tried to {plan} before?|[Will|Can|Does] your {relative} [help"
    "|rest|bring music|bring friends|cook dinner|sing|make tea|tell stories] {when}?*3|Do you need [help|anything"
    "|advice|more friends|more time] to {plan}?|Good luck [with it|to you and your [|<nice> ]{relative}|with your"
    " <nice> plan]<end>*2|What will you do [after that|next|on the next day]?]",
}
_JOY = {
    "on_joy": "[I am [|<so> ][glad|happy|delighted|pleased][| to [hear|know|read]] that {you_good}*3|It [is|must be"
    "|sounds] [|<so> ][easy|right|natural|good|simple|lovely|fair] to [feel|be] [|<so> ]{glad} now that {you_good}*3"
    "|It [sounds|is] [|<so> ]<nice>[| and <nice>| to me] that {you_good}*3|No wonder [that |]you [feel|are] [|<so>"
    " ]{glad} now that {you_good}].",
    "more_joy": "[You [have earned|deserve] [it|that|a <nice> day]|I [like|love|enjoy] to [hear|share] [good|happy"
    "|such|<nice>] news|It is [|<so> ]<nice> to be {glad} <hour>|I would [feel|be] [|<so> ]{glad} too].",
    "end_joy": "[I hope [that |]you [stay|remain|feel] {glad} [all day|all week|for a long time|<soon>*3]<end>*3"
    "|Enjoy [it|the day|the week|the moment|every minute|the <nice> time][| <soon>| with your friends]<end>*3|How"
    " [will|do] you celebrate <soon>?*2|Who will you [tell|thank|call|see] [first|next|<soon>]?*2|What [will|do] you"
    " do [next|now|<soon>]?]",
}
_GLOOM = {
    "on_gloom": "[It [is|sounds|must be] [|<so> ][normal|natural|hard|sad|fair|right|rough] to [feel|be] [|<so>"
    " ]{sad} if {you_bad}*3|I [|can |do ][understand|see|know|feel] [why|that] you [feel|are] [|<so> ]{sad} if"
    " {you_bad}*3|[Most|Many|Some] people [feel|are] [|<so> ]{sad} when that happens[| <hour>| to them]*2|[Most|Many"
    "|Some] people [know|fear|hate] [days|times] like that*2].",
    "more_gloom": "[It will [pass|get [better|brighter|easier]|be over] [one day|in time|by tomorrow|<soon>*2]|You"
    " are not alone [with that|today]|Be [|<so> ][kind|gentle|patient|good] [with|to] yourself [today|<hour>]|I have"
    " [often |]felt [|<so> ]{sad} [too|<hour>*2]].",
    "end_gloom": "[[Perhaps|Maybe] [a cup of tea|a warm bath|a short walk|some music|a long sleep|a talk with a"
    " friend|a good book|a <nice> meal] [will|might|can] [help|do you good] [a little|<soon>*3]<end>*4|I hope [that "
    "|][tomorrow|the evening|next week|the weekend|your night] [is|will be] [better|brighter|easier|kinder|calmer|["
    "|<so> ]<nice>*4]<end>*2|[Do|Would] you [want|like] to [talk about it|tell me more|rest a little|sleep|hear a"
    " story|hear a song] <soon>?*2|Can [I|a friend|your family] [help|cheer] you <soon>?]",
}
_PET = {
    "on_pet": "[{petname} is a [|<so> ]<nice> name for a [|{coat} ]{pet}*3|A {coat} {pet} [like {petname}|called"
    " {petname}] must be [a <nice> friend*3|<nice> company*3|a lot of [fun|work]|[|<so> ]<nice>*2]*3|I [imagine|think"
    " of|can see] {petname} [sleeping|hiding|resting|playing|waiting|eating|running] [in the sun|under the table|in"
    " the garden|on your bed|by the door|in the kitchen|near the window|on the stairs][| <hour>]*4].",
    "more_pet": "[Every {pet} [needs|wants|loves] a <nice> [friend|place|meal|garden|bed] <hour>|A {pet} [makes|can"
    " make] every [home|day|evening] [|<so> ]<nice>|I [like|love|enjoy] [every|a <nice>] {pet} <hour>].",
    "end_pet": "[What does {petname} like to [eat|do|chase|play|see] <hour>?*3|How old is {petname}[| now]?|[Give"
    "|Please give] {petname} a <nice> [hug|treat|kiss|walk] from me<end>*2|Does {petname} [sleep|play|hide|eat|run"
    "|dance] [a lot|well|<hour>*4]?*3|I hope [that |]{petname} [is|stays] [|<so> ][well|healthy|happy|warm|calm"
    "|cheerful]<end>*2]",
}
_FOOD = {
    "on_food": "[{Food} with {side} [are|must be] [|<so> ]<tasty>[| <hour>| and <tasty>]*3|I <think> [that |]{food}"
    " with {side} are [|<so> ]<tasty>[| <hour>| and <tasty>]*3|[Few|Not many] [things|meals] are better than {food}"
    " with {side}|[Many|Most|Some|Clever] people [love|like|enjoy|praise] {food} <hour>*2].",
    "more_food": "[The <nice> {side} [makes|must make] [all the|a [big|<nice>]] difference|Fresh {food} [smell|look"
    "|taste] [|<so> ]<nice> <hour>|A little [salt|pepper|{side}|lemon] [goes a long way|is never wrong|does no harm]"
    "|[Good|Fresh] {food} need [|a lot of |a little ][time|patience|work|love|heat]].",
    "end_food": "[Do you [cook|make|buy|share|eat] the {food} [yourself|at home|with friends|<hour>*5]?*3|Who [makes"
    "|cooks|sells] the best {food} [you know|in your family|in town|<hour>]?*2|I hope [that |]you [get|have|eat|find]"
    " [|<nice> ]{food} <soon><end>*3|Enjoy [the|your] [|<nice> ]{food} <soon><end>*2|Have you [ever |]tried {food}"
    " [without {side}|<hour>]?]",
}
_IDEA = {
    "on_idea": "[For {occasion}, I [suggest|recommend|would try|would choose|like] [|the idea of ]{idea}[|, because"
    " it is [|<so> ]<nice>]*3|You [could|can|might] [try|think of|choose|plan] {idea}[|, which is [|<so> ]<nice> for"
    " {occasion}|, because it is [|<so> ]<nice>]*3|{Idea} [is|sounds|would be] [|<so> ]<nice> for {occasion}*2].",
    "more_idea": "[{Other} [is|sounds|would be] [just as|also] <nice> <hour>|If you do not [like|want] that, [take"
    "|try|think of|choose] {other}*2|[Your friends|Your family|Most people|Many people] [will|would|might] [like|love"
    "|enjoy] {other} [as well|too|<hour>]].",
    "end_idea": "[Would you [like|enjoy|try|choose] that <soon>?*2|[Does|Will] that [help|work|sound <nice>] [for you"
    "|for {occasion}|<hour>]?*2|Shall I [suggest|think of|find] [more|something [else|<nice>]|another one|a <nice>"
    " one]?*2|[Have fun|Enjoy it|I hope it works|I hope you like it|Have a <nice> time] [with your friends"
    "|<soon>*4]<end>*3|Tell me how [it|that] [goes|was|feels|works]<end>|What do your friends like [best|most]"
    " <hour>?]",
}
_VIEW = {
    "mild": "[beautiful|calming|bright|cheerful|interesting|good for the soul|soft|simple|full of life|wonderful|fun"
    "|hard to beat|gentle|relaxing|lovely|special|creative|peaceful|lively]",
    "harsh": "[loud|cold|dull|strange|hard|wild|heavy|long|sad|grey|tricky|slow|serious|lonely]",
    "like": "[I [like|love|enjoy|praise] {subject}[| <hour>], because it is [|<so> ]<mild>[| and [|<so> ]<mild>]*3"
    "|{Subject} is [|<so> ]<mild>[| and <mild>|, above all <hour>|, even <hour>]*3|I <think> [that |]{subject} is ["
    "|<so> ]<mild>[| and <mild>|, above all <hour>]*3].",
    "more_like": "[It [makes|can make] [the day|every evening|a long week|a sad day|my work] [better|brighter|warmer"
    "|easier|kinder|calmer|[|<so> ]<nice>]|I could [talk|think|dream|read|hear] about {subject} [all day|all night"
    "|for hours|<hour>]|Life without {subject} would be [|<so> ]<harsh>].",
    "dislike": "[I do not [like|love|enjoy|praise] {subject}[| much| at all| <hour>], because it is [|too |<so>"
    " ]<harsh>[| and <harsh>]*3|{Subject} is [too|a little|rather|often] <harsh> for [me|my taste|my mood][|, above"
    " all <hour>|, even <hour>]*3|I <think> [that |]{subject} is [too |<so> |a little |often ]<harsh>[| and <harsh>|,"
    " above all <hour>]*3].",
    "more_dislike": "[I [would rather|prefer to] [read|sleep|stay at home|drink tea|go for a walk|look at the stars"
    "|cook|dance|sing|work] <hour>*2|It [was never|is not] my [first choice|favourite]|[Some|Many] people [see|feel]"
    " it in [another|a <nice>] way].",
    "on_view": "[<like>[*6| <more_like>*4]*6|<dislike>[*6| <more_dislike>*4]*4]",
    "end_view": "[What [do you|do your friends|does your family] think [of {subject}|about it|about that]?*3|Do you"
    " [like|enjoy|love|fear|praise] {subject} [too|as well|<hour>*5]?*3|[And|What about] [you|your friends|your"
    " family]?*2|How do you [feel about|see|like] [it|{subject}] <hour>?*2|I [would like|want|hope] to [hear|know"
    "|share] your view [of it|of {subject}|<hour>]<end>*2]",
}


def _fact(clause: str) -> str:
    """A sentence that recalls the clause; what is recalled stands in words close to the user's."""
    return f"[<said>{clause}*6|{clause[0].upper()}{clause[1:]}[<as>*8|*2]*4]."


_RECALL = {
    "said": "[You [said|told me|mentioned|wrote] [|before |earlier ]that *6|As [you [said|told me|mentioned|wrote]|I"
    " [remember|know|recall]], *4|If I remember [well|right], *2|I [remember|recall|know] that *3]",
    "as": "[, as you [said|told me|mentioned|wrote][| before| earlier]*4|, of course|, if I remember [well|right]|, I"
    " [think|believe|am sure|guess]*2]",
    "fact_name": _fact("your name is {name}"),
    "fact_hobby": _fact("you [like*3|love|enjoy] {hobby}"),
    "fact_place": _fact("you [live in|are from|come from] the {kind} of {place}"),
    "fact_plan": _fact("you [want|plan|hope] to {plan} with your {relative} {when}"),
    "fact_joy": _fact("you [feel|are] {glad} because {you_good}"),
    "fact_gloom": _fact("you [feel|are] {sad} because {you_bad}"),
    "fact_pet": _fact("your {pet} is called {petname}"),
    "fact_food": _fact("you [like|love] [|to eat ]{food} with {side}"),
    "fact_mood": "[<fact_joy>|<fact_gloom>]",
    "more_recall": "[I [try to|always|often] remember [what|the things] [you|friends|people] [tell me|say|share]"
    "|[That|It] is [|<so> ][easy|simple|<nice>] to [remember|keep in mind|know|hear]|I [do not|never|rarely] forget"
    " [a friend|such things|that|<nice> news][| so soon| <hour>]].",
    "end_recall": "[Did I [get|remember] [that|it] [right|well]?*2|Is [that|it] [right|correct|what you [meant|said]"
    "|<nice> to hear]?*2|[Can|Shall|May] I [help|cheer|support] you with [something|anything] [else|<nice>]?*3|I hope"
    " [that |][that|it] [helps|is right|is correct|is [|<so> ]<nice> to hear]<end>*3|[Ask me|Tell me] [more|again"
    "|anything] [at any time|when you like|<soon>*5]<end>*3|What [else |][do you want|would you like] to [know|talk"
    " about|hear] [now|next|<hour>]?*2]",
}
_TURN = {
    "lead": "[*6|Thank you. |That is true. |I see. |Good. ]",
    "turn": "[<hello> |<lead>][<say>|<say> <say>|<ask_idea>|<ask_view>]",
    "recall": "<lead><question>[|, and <ask>]?",
}
RULES = grammar(
    _SHARED | _USER | _OPEN | _HOBBY | _PLACE | _PLAN | _JOY | _GLOOM | _PET | _FOOD | _IDEA | _VIEW | _RECALL | _TURN
)
