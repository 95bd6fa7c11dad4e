"""Grammar of wishes: patterns on plain words (see `vocabulary`) for the ways in which players want, refuse and ask."""

from __future__ import annotations

import re

from footlights_actors.demo.tavern.vocabulary import DISHES, ROOMS, any_of, one_line

# -- things, with what stands before and after them

DISH, ROOM = "|".join(DISHES), "|".join(ROOMS)
ITEM = rf"(?:{DISH}|{ROOM}|room|lantern)"
_DETERMINER = one_line(
    r"""(?:an?|the|some|your|my|that|this|those|these|another|more|extra|any|our|all|half|few|several|many
    |-?[\d.]+)"""
)
_ADJECTIVE = one_line(
    r"""(?:cheap|cheapest|finest|\w+est|steaming|foaming|bubbling|boiling|refreshing|cold|warm|hot|fresh|good
    |nice|large
    |small|little|dark|red|white|strong|local
    |house|tall|full|whole|single|fine|decent|proper|bloody|damn|quick|lovely|old|free|quiet|simple|plain|other|famous
    |tasty|delicious|great|big|empty|coin|barrel|keg|cask|round|bowl|mug|goblet|slice|glass|lots|plenty|piece
    |side|x|of|more|only|just)"""
)
_BEFORE = rf"(?:(?:{_DETERMINER}|{_ADJECTIVE}) )*+"
"""Possessive, since a word may be in both lists: no line may take more than linear time here."""
_AFTER = one_line(
    r"""(?=$| (?:please|for|to(?! be\b)|at|in|on|from|of|by|then|now|too|as|tonight|today|you|thanks|thank
    |over (?:here|there|the (?:door|bar|counter))|here|there
    |again
    |instead|first|quick|quickly|innkeeper|sir|friend|mate|love|fam|asap|pronto|immediately|pal|boss|chief
    |buddy|odo|landlord|barkeep
    |keeper|x|max|below|that|which|because
    |since|each|before|while|right|up|my|good|if|until|so|me|upstairs|under|than|view|only|key|actually|rather|after
    |\d+
    |it is$|(?:would|will|could|can) you$|hanging|off|around|this|i (?:mean|suppose|guess|think|reckon))\b)"""
)
"""Words that may follow the name of a thing that is ordered. A verb may not: "the attic is cold" orders nothing."""

THING = re.compile(rf"(?P<before>{_BEFORE})(?P<item>{ITEM}){_AFTER}")
ODD_THING = re.compile(
    rf"(?P<before>{_DETERMINER} {_BEFORE})(?!is |was |are |be |has |for |to |in |at |about |price )"
    rf"\w+ (?P<item>{DISH}|lantern){_AFTER}"
)
"""A thing with one adjective that is not in the list."""
ROOM_BY_PLACE = re.compile(rf"(?P<before>{_BEFORE})(?:room|thing|keys?|place)\b.*\b(?P<item>{ROOM})\b")
"""Such as: the one that looks out on the garden."""
EVERYTHING = re.compile(r"(?:(\d+|an?) )?(?:of )?(?:everything|each|every dish|(?:the )?(?:whole|entire) menu)\b")
PRAISED = re.compile(
    r"(?:good|nice|lovely|fine|great|delicious|tasty|famous|decent|quiet) "
    r"|.*\bin (?:town|the (?:world|land|realm|kingdom))\b"
)
LANTERN_ALONE = re.compile(rf"{_BEFORE}lantern\b")
A_RUMOUR = re.compile(rf"(?:tell (?:me|us) )?{_BEFORE}(?:\w+ )?rumour\b")

MISSING = any_of(
    r"""(?:beefsteak|steak|beef|whisky|whiskey|rum|vodka|gin|brandy|mead|cider|coffee|tea|milk|water|juice|soda|cola
    |champagne
    |cocktail|absinthe|chicken|pork|ham|bacon|fish|salmon|lamb|mutton|venison|goose|duck|turkey|roast|sausage|soup
    |cheese
    |butter|egg|pie|cake|pizza|burger|fries|chips|salad|potato|potatoe|pasta|rice|porridge|apple|fruit
    |pudding|lobster|pheasant|rabbit|hare|boar|grog|schnapps|sherry|tequila|oyster|eel|trout|crab|noodle|cookie
    |biscuit|chocolate|crisp|pastry|pancake|lemonade|nut|olive|carrot|vegetable|onion|meatball|dumpling|tart
    |dessert|sandwich|omelette|curry|sushi|honey|suite|penthouse|balcony|stable|horse|sword|dagger|potion
    |armour
    |armor|shield|bow|arrow|map|rope|torch|spell|scroll|ring|bath|massage|tobacco|pipe)s?"""
)
"""Things that the house has not got."""
MISSING_ALONE = re.compile(rf"{_BEFORE}(?:\w+ )?{MISSING.pattern}{_AFTER}")
UNKNOWN = re.compile(
    one_line(
        r"""(?:an?|some|\d+) (?!seat|chair|table|place|word|chat|talk|smile|corner|spoon|fork|knife|blanket|candle
        |pillow
        |key|song|joke|kiss|moment|minute|quiet|peace|company|bowl|round|little|good|nice|rumour|thing|night|coin
        |(?:for|of|at|in|to|please)\b)\w+(?: please)?$"""
    )
)
"""In the middle of an order, something else that the house has not got."""

# -- clauses

SENTENCE = re.compile(r"(?:[^.!?;:]|(?<=\d)\.(?=\d))+[.!?;: ]*")
QUOTED = re.compile(r"\"[^\"]*\"|\*[^*]*\*")
CODE = re.compile(r"[{}_\\]|</?\w+>|^\s*/(?!yes|no)\w")
LINK = re.compile(r"(?:^|(?<= ))(,|and|but|or|nor|with|plus|then|\+|&)(?= |$)")
SO = re.compile(
    rf"(?<!,) so (?=(?:i|we|give|bring|pour|get|put|just|please|make|let|can|could|may|an?|the|\d+|{ITEM})\b)"
)
UNMARKED_LINK = re.compile(
    rf"\b({ITEM})(?= (?:not|no|without|instead of|rather than|minus|except)\b| (?:\d+|an?) {_BEFORE}(?:{ITEM})\b)"
)
"""The end of a clause without a link: "stew not bread", "2 ales 1 stew"."""
LEAD = re.compile(
    one_line(
        r"""(?:hello|hi|hey|ho|oi|yo|k|aight|bro|bruh|dude|pray|prithee|preferably|ideally|(?:me|him
        |her)(?= (?:an?|the|\d+) )|you there|hey you|somebody|someone
        |hail|greetings|good (?:morning|day|evening|afternoon)|evening|well met|please
        |kindly|okay
        |ok|right|alright|well|so|then|now|just|only|also|both|ah|oh|um|hmm|yes|sure|fine|listen|look|quick|quickly
        |first
        |innkeeper|barkeep|bartender|keeper|landlord|sir|friend|mate|odo|master|my (?:good )?(?:man|friend|sir)
        |finally
        |good (?:man|sir|innkeeper|innkeep)|excuse me|sorry|thank you|thanks|tonight|today|in that case|maybe
        |perhaps|for (?:me|us|him|her|them|now|tonight|starters|mirel|my (?:friend|wife|husband|companion|mate
        |brother|sister))|(?:i )?(?:think|guess|suppose|reckon)|i say|actually|rather|i mean
        |wait
        |hang on|hold on|on second thoughts?|and|but|or|no|not bad)\b[ ,]*"""
    )
)
"""Beginnings of a clause that do not change its meaning."""
AFTER_NO = re.compile(
    one_line(
        r"""(?:i|we|you|it|that|this|the|an?|\d+|my|your|make|give|bring|get|pour|just|wait|sorry|actually|rather
        |thanks
        |thank|sir|friend|please|innkeeper|let|not|can|could|what|how|which)\b"""
    )
)
"""Words after a no that is an answer. Otherwise it refuses something: "no bread"."""

_BUY = one_line(
    r"""(?:have|take|get|buy|rent(?: out)?|book|hire|order|try|(?:eat|drink)(?! my)|reserve|purchase|(?:sleep
    |stay|crash|kip|lodge|bunk
    |spend|bed down)(?: the night)? in|(?:go|settle|start|begin|finish|stick) for|stick to|grab|choose|pick
    |partake of|celebrate for|do(?= (?:the|an?|some|\d+)\b))"""
)
_GIVE = one_line(
    r"""(?:give|bring|do(?= (?:me|us) )|pour|fetch|serve|hand(?: over)?|pass|sell|send|draw|get|rent|book|fix|prepare
    |make|slide|order|spare|manage|feed|sling|chuck|cook(?: up)?|rustle up|whip(?: up)?(?= )
    |find)"""
)
_TO_WHOM = one_line(
    r"""(?:(?:me|us|him|her|them|mirel|everyone|everybody|myself|(?:the|that|this|my|our|his) (?:tinker|friend|lads?
    |man|lady
    |cat|mate|horse|companion|wife|husband|brother|sister)) (?:(?:and|or) (?:me|us|him|her|mirel|my friend
    |myself) )?)?"""
)
_SOFTLY = one_line(
    r"""(?:(?:please|kindly|perhaps|maybe|just|also|now|still|really|then|only|possibly|have|all|both|do
    |definitely|gladly
    |like to|ever so|humbly|very much|dearly|quite) ){0,3}?"""
)
WANT = re.compile(
    one_line(
        rf"""(?:(?:i|we) (?:will|shall|want to|would like to) (?:get|buy|order|treat) (?=(?:mirel|him|her|them
        |the tinker|my friend) ){_TO_WHOM}(?:to )?
        |(?:i|we) {_SOFTLY}(?:want|need|wish for|fancy|desire|crave|require|request|demand|take|rent|buy|book
        |order|choose
        |pick
        |go for)(?! to\b| you\b)
        |(?:i|we) {_SOFTLY}(?:(?:will|shall|would) {_SOFTLY})?(?:want|need|like|love|prefer|wish|care|have come|come
        |came
        |am here|are here|going|am going|are going)? ?{_SOFTLY}to {_BUY}
        |(?:i|we) (?:will|shall|must) {_SOFTLY}(?:{_BUY}|need|want|require)
        |(?:i|we) (?:would|should) {_SOFTLY}(?:like|appreciate|welcome|settle for|be up for
        |be (?:\w+ )?(?:grateful|glad|happy
        |thankful|obliged) for|love|prefer|want|fancy|rather have|rather take|take|have)(?! to\b| you\b)
        |(?:i|we) (?:would|could) (?:kill|murder) for|(?:i|we) will be (?:having|taking|needing|wanting)|(?:i
        |we) (?:was|were) hoping for
        |(?:i|we) (?:have )?decided on
        |(?:i|we) {_SOFTLY}could {_SOFTLY}(?:use|go for|murder)
        |(?:i|we) (?:am|are) (?:having|taking|after|ordering|in need of|looking for|in the mood for|(?:dying
        |desperate|hungry|thirsty|up) for|craving)
        |(?:i|we) (?:want|need|would like) you to {_GIVE} {_TO_WHOM}
        |(?:i|we) (?:will |would |can )?(?:give|pay|offer)(?: you)? \d+(?: coin)?s? for
        |here (?:is|are) \d+ coin for
        |let (?:me|us) {_SOFTLY}{_BUY}
        |(?:may|can|could|might) (?:i|we) {_SOFTLY}(?:trouble you for|{_BUY})
        |(?:can|could|would|will) you {_SOFTLY}(?:be so kind as to |be kind enough to )?{_GIVE} {_TO_WHOM}
        |(?:might|could) there {_SOFTLY}be
        |buy (?=me |us |him |her |mirel |everyone |everybody |the |my ){_TO_WHOM}
        |any chance of|(?:make|call) (?:it|that|mine)|mine (?:is|will be)|add|time for|throw in|treat (?:me|us) to
        |(?:put|set|sign|mark|book|check|settle|fix|lodge|hook|start|hit) (?:me|us) (?:up |down |off )?(?:in|into|for)
        |{_GIVE} {_TO_WHOM}
        |(?:rent|book|hire|take|reserve|order|buy|get|want|need|wanting|start for))(?:(?<= )|\b ?)"""
    )
)
"""Beginnings of a wish; the rest of the clause is its object."""
ASK = re.compile(
    one_line(
        r"""(?:what|whats|which|who|whose|where|when|why|how|is|are|was|were|have you|has|had|can|could|may|might
        |will|would
        |(?:do|does|did)(?! not (?!you\b|i\b|we\b))|shall|should|am|any|anything|anyone|got|tell me|show me|explain
        |describe
        |i wonder|let me guess|you (?:have|got|sell|serve)|whatever|heard)\b"""
    )
)
TELLS_OF = re.compile(
    r"(?<!that )(?<!which )(?<!it )(?<!who )\b"
    r"(?:is|was|were|are|had|made|makes|tasted?|tastes|smells?|smelled|gave)\b(?! free$)"
)
"""A verb that makes a sentence of a name: "the ale at the last inn was sour"."""
EXCUSE = re.compile(
    one_line(
        r"""(?:i am(?! in a hurry)|it is|they are|not (?:now|yet|today|tonight|right now)|later|alas
        |i (?:can|could|should|must|will) not|i have (?:no|not|only)|my \w+ (?:is|says|will))\b"""
    )
)
"""Words after a "but" that takes a wish back in a polite way."""
OFFERS = re.compile(r"(?:want|need|get|buy|take|wanting) ")
"""Beginnings of a question to somebody else: "want an ale?"."""
ASK_PRICE = re.compile(r"(?:how (?:much|is|big|good|many)|what (?:is|does|would|do you)|is (?:it|that)|any good)\b")
NOT_AT_ALL = re.compile(r"(?:i |we )?(?:(?:do|will|would|am|did) )?(?:not|never)(?: really| want (?:it|that|them))?")
OTHERWISE = re.compile(
    one_line(
        r"""(?:or )?(?:otherwise|failing that|or else|if not|in that case|if (?:you|there)
        (?: (?:have|has|are|is|do|got|not|no|none|any|some|it|that|out|of|left|1|(?!i |we |the |an? )\w+)){1,5}?)
        (?:$|(?: (?:then|,))*+(?= (?:i|we|give|bring|the|an?|just|\d+|ale|bread|stew|wine)\b| ?$))"""
    )
)
"""What is wanted if the house has not got the first thing."""
LACKS = any_of("no|not|none|out of|otherwise|failing|else")
CONDITION = re.compile(r"(?:if|unless|provided|as long as)\b")
SUGGEST = re.compile(
    r"(?:how|what) about |should i (?:take|have|get|try|order|rent) "
    r"|i (?:can not|could not) decide|i am (?:not sure|torn)"
)
NOT = any_of(
    r"""no|(?<!have )(?<!had )not|never|without|nor|neither|none|hold the|skip|minus|except|hate|dislike
    |sick of|tired of|instead of
    |rather than|but the|leave (?:out|off)|refuse|enough|avoid|forget|remove|drop|keep your|stop|less|nothing
    |allergic"""
)
RATHER = re.compile(r"^(?:no , )?(?:not|instead of|rather than) |, (?:just|only|rather|instead) | instead ")
"""Something is refused in favour of what follows."""
TAKE_BACK = any_of(
    r"""forget (?:it|that|about it|them|everything)|never ?mind|scratch that|strike that|changed my mind|no wait
    |wait no
    |cancel (?:it|that|them|everything|the order|my order|all)|leave it|let it be$|i want nothing|i take (?:it
    |that) back
    |(?:do|would) not want (?:it|them|that|anything)(?! \w)|i am (?:fine|good)|(?:i will|i would) (?:rather )?(?:pass
    |not$)
    |nothing(?! (?:but|like|beats|better|fancy|special|much|big|too|for (?:him|her|them|mirel|my|the)))|not (?:hungry
    |thirsty) after all|kidding|joking
    |jk|psych|(?:was|just|only) a joke|as if"""
)
CORRECT = any_of(
    r"""actually|rather|i meant?|no|wait|sorry|hang on|hold on|on second thoughts?|make (?:it|that)|instead(?! of)
    |correction"""
)
TOO = any_of(r"""too|also|as well|another|more|extra|add|plus""")
MAYBE = any_of(
    r"""maybe|perhaps|possibly|probably|later|tomorrow|next|someday|soon|if|unless|whether|not sure|in case
    |as long as|provided"""
)
AGAIN = any_of(
    r"""the usual|my usual|same again|the same|another round|same as|what (?:he|she|they|mirel) (?:is|are) having
    |^(?:again|more)$"""
)
INFORM = any_of(r"""about|know|price|look|how much|hear|see|ask|information|details|list""")
RUMOUR = any_of(r"""rumour|heard (?:anything|something|lately)|what is new|the latest""")
ROUND = any_of(r"""(?:an?|1|the|next|this) round""")
FOOD = any_of(r"""kitchen|cellar|menu|eat|drinks?|dish|dishes|food""")
UNSPECIFIED = any_of(r"""an? drink|food|meal|breakfast|lunch|dinner|something to (?:eat|drink)""")

# -- details of a wish

VESSEL = "(?:bowl|mug|goblet|slice|glass)"
VESSELS = {"bowl": "stew", "mug": "ale", "goblet": "wine", "slice": "bread"}
"""What is in a vessel if nothing else was named."""

IT = re.compile(
    one_line(
        r"""(?:it|that|this|them|these|those|(?:that|the|this|a) thing)
        (?: (?:please|then|now|too|to me|for .*|thanks|tonight|all|at once|innkeeper|off you.*))*$"""
    )
)
"""What may stand for something that was named before."""
SOME_MORE = re.compile(
    rf"(?:the )?(?:(?P<number>\d+|another|more|some)(?: (?:thing|more|{VESSEL}|of (?:them|those|these|it"
    rf"|that)))?|an? (?:\w+ )?{VESSEL})"
    r"(?: (?:please|for|thanks|now|right now|then|too|as well|with|will|is)\b|$)"
)
"""So many of what was named before: "another", "two of them", "a bowl"."""
OFFERED = re.compile(
    one_line(
        r"""\bfor (?:only |just |about |like )?(?:(\d{1,6})(?: coins?\b| pieces?\b)|(?P<people>\d{1,6})$)
        |\b(?:give|pay|offer)(?: you)? (\d{1,6})\b|\bhere (?:is|are) (\d{1,6})\b|\b(\d{1,6}) coin (?:room|thing)"""
    )
)
COINS_NAMED = re.compile(r"(?<!have )(?<!got )(?<!max )(?<!below )(?<!my )\b(\d{1,6}) coin\b")
CEILING = re.compile(r"\b(max|below) (\d{1,6})\b")
RANK = re.compile(r"\b(cheapest|finest) room\b")
SECOND_RANK = any_of(r"""(?:second|third|2nd|3rd|next|not the) (?:cheapest|finest)""")
NIGHTS = any_of(
    r"""(?:[2-9]|\d\d+|few|several|some|many) (?:\w+ )?(?:night|day|week|month|year)s?
    |(?:an?|the|1|all|whole) (?:week|month|year|winter|season)|for ?ever"""
)
PEOPLE = any_of(r"""(both|[2-9]) of (?:us|them)|us both|for both""")
VAGUE_NUMBER = any_of(r"""few|several|many|all|lots|plenty|barrel|keg|cask""")
FOR_EACH = any_of(r"""each|for (?:all|every\w*)""")
