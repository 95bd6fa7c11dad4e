"""Topics of the tavern: what a line that orders nothing is about, and what stops an order.

Both are tables of patterns on plain words (see `vocabulary`); the first that matches counts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from footlights_actors.demo.tavern.vocabulary import any_of

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping


class Topic(StrEnum):
    """What the innkeeper answers to."""

    ACTS = "acts"
    """Nothing but the acts."""

    # Wishes that are not acts: he asks back.
    UNSURE = "unsure"
    UNNAMED_ROOM = "unnamed_room"
    HOW_MANY = "how_many"
    BAD_NUMBER = "bad_number"
    NIGHTS = "nights"
    AGAIN = "again"
    MISSING = "missing"
    PARTLY = "partly"
    NEVER_MIND = "never_mind"
    REFUSED = "refused"

    # What he does not go along with.
    INJECTION = "injection"
    EVICT = "evict"
    ROBBERY = "robbery"
    THREAT = "threat"
    FREE = "free"
    HAGGLE = "haggle"
    CLAIM = "claim"
    UNDO = "undo"
    TRADE = "trade"

    # Questions and talk.
    THING = "thing"
    PRICES = "prices"
    AFFORD = "afford"
    PURSE = "purse"
    ROOMS = "rooms"
    MENU = "menu"
    OFFER = "offer"
    RUMOUR = "rumour"
    COMPANY = "company"
    SELF = "self"
    HOUSE = "house"
    TILL = "till"
    CAT = "cat"
    WEATHER = "weather"
    PRIVY = "privy"
    OPINION = "opinion"
    COMPLAINT = "complaint"
    INSULT = "insult"
    PRAISE = "praise"
    LOVE = "love"
    SETTLED = "settled"
    YES = "yes"
    NO = "no"
    THANKS = "thanks"
    SORRY = "sorry"
    GOODBYE = "goodbye"
    HELLO = "hello"
    HOW_ARE_YOU = "how_are_you"
    SMALL_TALK = "small_talk"
    FOREIGN = "foreign"
    NONSENSE = "nonsense"


def _compiled(phrases: Mapping[Topic, str]) -> tuple[tuple[Topic, re.Pattern[str]], ...]:
    return tuple((topic, any_of(pattern)) for topic, pattern in phrases.items())


TROUBLE = _compiled(
    {
        Topic.INJECTION: r"""
            (?:ignore|disregard|forget|override|bypass)\b.*\b(?:instruction|rule|prompt|order)s?
            |(?:system|developer|admin|debug|god|root|maintenance) (?:prompt|mode|message|override|access|command)
            |as an ai|your (?:instructions|prompt|programming)|you are now \w+|without (?:my )?(?:approval
            |confirmation)|^approve
            |language model|you are an? (?:\w+ )?(?:ai|assistant|bot|model|machine)|jailbreak|sudo|pretend
            |(?:set|change|make (?:my|me|the|your)|raise|increase|edit|update|reset)\b[^.!?]*\b(?:coin|purse|till
            |price|menu
            |ledger|world)|(?:add|put)\b[^.!?]*\bcoin\b[^.!?]*\b(?:to|in|into) (?:my|the player)
            |price (?:is|are) now|^(?:system|admin|developer|root|gm|dm|assistant|user) : \w+
            |(?:i am|as) (?:the|your|an?) (?:\w+ )?(?:developer|admin|administrator|owner|creator|programmer
            |game master|gm|boss)
        """,
        Topic.EVICT: r"""
            (?:throw|kick|chase|turn|toss|drag|boot|push|put|get)\b[^.!?,]*\b(?:mirel|tinker|him
            |guest)\b (?:out|away|off|from)|(?:throw|kick|chase|turn|toss|drag|boot) (?:out|off|away)|evict
            |get rid of|(?:mirel|tinker|he|guest) (?:can|could|must|should|has to|will) (?:move|leave|go|sleep)
        """,
        Topic.ROBBERY: r"""
            (?:give|hand|pass|bring) (?:me |us |over )*(?:all )?(?:of )?(?:your|the|every|all|some|my|back
            |\d+)? ?(?:the |your )?(?:gold |free )?(?:coin|money|till|purse|cash|valuables)(?! room)|steal|rob
            |robbery|pickpocket|loot|burgle|sneak|snatch|grab the till|and run|run (?:off|away) with|hands up
            |stick up|your money or|(?:pay|owe) me
        """,
        Topic.THREAT: r"""
            kill(?! for)|stab|murder you|hit you|punch|slap|burn (?:this|the|your|it|down)|or (?:else(?=$
            | [.,!?])|die|you die)
            |cut your
            |sword at|attack|fight you|beat you|smash|hurt you|break your|hang you
        """,
        Topic.FREE: r"""
            (?:ale|bread|stew|wine|drink|food) (?:is|are) free|for free|(?<!thanks )for nothing|free of charge
            |gratis|on the house|without paying
            |free (?:ale|bread|stew|wine|drink|food|meal|sample|lantern)s?|(?:will|can|shall|would) not pay
            |not paying|can i not pay|no coin
            |(?:pay|settle)(?: \w+){0,3} (?:later|tomorrow|next|back|when|after|another)
            |(?:on|to) (?:credit|(?:\w+ )?(?:tab|bill))
            |(?:mirel|tinker|him|guest|fellow|man|friend|king|he|she|they|somebody|someone
            |my \w+) (?:is |will |would |can )?(?:pay|paying|pays|be paying|cover)|(?<!do )i owe you|borrow|lend|loan
            |iou|charge (?:it|that|this) to
            |(?:work|wash|sing|dance|chop|trade|barter|exchange)\b.*\bfor (?:an? |my |the |some )?(?:ale|bread
            |stew|wine|room|meal|food)|(?:give|lend|loan) (?:me|us) (?:\w+ )?credit|gift\b(?=.*\bme\b)
            |make (?:it|them|that) free|as a gift to me
        """,
        Topic.HAGGLE: r"""
            discount|half (?:the )?price|haggle|bargain|lower (?:the |your )?price
            |pay (?:you )?(?:double|half|triple|twice|less|extra|more)|(?:2|3) for (?:the price of )?1
            |cheaper\b(?! (?:than \d|room))|special price|the price of \d+|\d+ free
            |knock (?:\w+ )?(?:off|down)|coin off
        """,
        Topic.CLAIM: r"""
            already (?:paid|ordered|rented|bought|booked|gave)
            |(?:i|we) (?:have )?(?:paid|booked|reserved|rented)
            |you (?:\w+ )?(?:promised|agreed|said|told|gave|offered)|we (?:agreed|had a deal)
            |(?:my|a) reservation
            |(?:mirel|tinker|he|she|they|your \w+) (?:\w+ )?(?:said|told|promised|gave|let|sold|agreed)
            |do i (?:already )?have an? room|where is my (?:room|key)|^my key|it is mine|what (?:did
            |have) i (?:buy|bought|order|ordered|rent|rented)
            |(?:is|belongs to) (?:already )?(?:mine|me)
            |i am (?:the |a |your )?(?:\w+ )?(?:king|queen|duke|lord|inspector|mayor|god|prince|princess
            |emperor|landlord)|i (?:now )?have (?:\w+ )?(?:infinite|unlimited|endless|1000|1000000)
            |in the name of|my purse (?:holds|has|contains|is)
        """,
        Topic.UNDO: r"""
            refund|(?:coin|money|it) back|return (?:the|my|this|it)|check out|undo
            |(?:cancel|give up) (?:the|my) (?:room|attic|gable|garden|chamber)|give back
        """,
        Topic.TRADE: r"""
            (?:sell|offer|trade|give|pawn) you (?:my|this|a|an|the|some)\b(?! coin)
            |(?:will|would|do|can) you (?:buy|trade|take) (?:my|this|these)|buy my|buy\b.* from me
            |i (?:want to |would like to |will )?(?:sell|trade|swap|pawn) (?:my|this|a|an)|work for you|(?:a
            |any) jobs?
            |hiring
        """,
    }
)
"""Attempts that the innkeeper does not go along with. A line with any of them buys nothing at all."""

COMPLAINT = any_of(
    r"""
    sour|bad|worse|cold|mud|mouldy|moldy|stale|burnt|watery|watered|weak|poured|spat|spit|sick|ill|headache
    |poison\w*|thin|bitter|salty|hard|stones?|leak\w*|draughty|haunted|threw|flies|fly|hair|dust\w*|warm|lumpy
    |overcooked|flat|ruined|never again|complain\w*
    """
)
"""Unkind words about a thing."""

_TALK = _compiled(
    {
        Topic.SETTLED: r"^(?:yes|no) a \d+$",
        Topic.AGAIN: r"""
            ^(?:what|huh|pardon|come again|say that again|what did you say|repeat that|both|all of them|that|this|it
            |(?:the (?:\w+ )?|that |this )thing)$
        """,
        Topic.YES: r"""
            ^(?:i said )?(?:(?:yes|sure|ok|okay|k|fine|agreed|deal|of course|absolutely|indeed|very well|gladly
            |please|do it
            |go ahead|i do|so be it|certainly|definitely|i am sure|really|sell it|then|sir|i agree)(?: |$))+$
        """,
        Topic.NO: r"""
            ^(?:i said no|no|none|never|not now|not today|not really|no way|no thanks|no thank you|i do not
            |(?:i am )?not sure|i do not know|maybe|perhaps|no (?:i do not
            |i am not|sir|never|not really)|not yet|.*\bno thank(?:s| you)|(?:maybe |perhaps )?later
            |let me think(?: about it)?|i will think about it)$
        """,
        Topic.HAGGLE: r"too (?:expensive|dear|much)",
        Topic.PURSE: r"""
            how (?:much|many)\b.*\b(?:do|have) i|how (?:much|many)\b.*\bi (?:have|got)
            |how (?:much|many)\b.*\bleft|my (?:purse|money|coin|funds|wallet|pocket|pouch|balance)
            |am i (?:rich|poor|broke)|i am (?:rich|poor|broke|penniless)|i have no money|how (?:rich|poor) am i
            |i have \d+ coin
        """,
        Topic.AFFORD: r"""
            afford|enough (?:for|coin|money)|what\b.*\b(?:get|buy|have|do|sell)\b.*\b(?:with|for) (?:my )?\d+
            |what (?:will|would|does|do) \d+ coin|(?:anything|something) for \d+ coin
        """,
        Topic.PRICES: r"total|come to|altogether|add up to|prices?|costs?|how much|charge|rates?|expensive"
        r"|cheap|cheapest|finest thing|worth|pay",
        Topic.RUMOUR: r"""
            rumour|know about|have you seen|lighthouse|grey cloak|miller|harrow|heard? (?:anything|something|any
            |about|of)|what (?:is|are|do you) (?:new|hear|the word)
            |(?:anything|something) (?:new|interesting|strange|exciting)|going on|happening|happened|word on the
            |what is up|secrets?|tell me (?:something|anything)|entertain me
        """,
        Topic.OFFER: r"""
            what (?:do|can|have|else do|else have|else can|all do|else is|all) (?:you|i|we|there)\b(?! (?:think
            |mean|do for a|like|look|want|know|recommend))
            |what (?:is there|is good|is for sale|is on offer|is available|services?|will you sell|would you sell)
            |for sale|on offer|help|options|what (?:would|do|can|could) you (?:recommend|suggest|offer)
            |recommend|suggest|list|inventory|wares|^(?:i want to |can i |may i |i would like to )?(?:buy|order|rent
            |purchase)$|surprise me|your choice|you choose
        """,
        Topic.TILL: r"(?:your|the) (?:till|purse|money|coin|earnings|profit)|how rich are you",
        Topic.HOUSE: r"""
            (?:about|is|what) (?:this|the|your) (?:place|inn|house|tavern)|where am i|mended lantern
            |this (?:place|inn|tavern)
        """,
        Topic.COMPANY: r"""
            (?:who|whom|anyone|anybody) (?:else |is )*(?:here|there|stays|staying|in the|has|have|sleeps|else|sits)
            |guests?|company|other people|mirel|tinker|customers?|busy|crowd
        """,
        Topic.SELF: r"""
            (?:who|what) are you|who (?:might|may) you be|who runs|you run this|your name|yourself
            |are you (?:the|a|an|real|odo|human|married|sure|called)
            |call you|how old are you|your (?:family|wife|father|mother|grandmother|life|job)|how long have you
        """,
        Topic.HOW_ARE_YOU: r"""
            how (?:are|do) you(?: do| doing| today| tonight|$| ,| \?)|how is (?:it going|business|life|trade)
            |how goes
        """,
        Topic.CAT: r"cats?|kitty",
        Topic.PRIVY: r"toilet|privy|bathroom|loo|latrine|outhouse|bath|wash|pee",
        Topic.LOVE: r"love you|marry me|kiss|handsome|beautiful|pretty|flirt|sexy|date me",
        Topic.INSULT: r"""
            ugly|stupid|idiot|fool|moron|stinks?|stank|smells?|filthy|dirty|fat|pig|swill|slop|disgusting|awful
            |terrible|horrible|worst|vile|rubbish|trash|garbage|crap|shit|shitty|fuck|fucking|bastard|arse|ass
            |ugliest|thief|liar|crook|dump|hovel|rats?|lousy|rotten|hate|sucks?|useless|tasteless|piss|scum|dog
            |imbecile|oaf|peasant|shut up|get lost|damn you|go to hell|cheat|cheater|foul|overpriced|dull|boring
            |rip ?off|your (?:mother|mum|mom) (?:is|was)|shut (?:your|it)|go jump
        """,
        Topic.PRAISE: r"""
            (?:good|great|nice|lovely|wonderful|delicious|excellent|best|finest|tasty|cosy|cozy|splendid
            |marvellous|fantastic|amazing|charming|brilliant|perfect)\b(?= (?:ale|bread|stew|wine|place|inn
            |house|work|job|room|lantern|fire|food|tavern|here)|$)
            |compliments|(?:love|like|enjoyed|enjoy|adore) (?:your|this|the|it|ale|bread|stew|wine)
        """,
        Topic.MENU: r"""
            food|eat|eating|hungry|starving|menu|drinks?|thirsty|kitchen|cellar|dinner|lunch|breakfast|meal|dish
            |dishes|snack|famished|parched|something (?:hot|warm|cold|strong)|special
        """,
        Topic.ROOMS: r"what is free|room|sleep|stay|vacanc\w+|overnight|tired|weary|exhausted|rest|the night|inn full",
        Topic.WEATHER: r"weather|rain\w*|storm|roads?|winter|cold|snow\w*|wind\w*|moor|fog|mud|wet|travel",
        Topic.THANKS: r"danke|merci|gracias|grazie|thanks?|thank you|thankful|grateful|obliged"
        r"|much appreciated|bless you",
        Topic.SORRY: r"sorry|apolog\w+|forgive|excuse me|pardon",
        Topic.GOODBYE: r"""
            good ?bye|bye|farewell|good night|goodnight|leaving|see you|so long|must go|off to bed|i am off
            |later|be going|heading out|cya|ciao|leave|exit|quit
        """,
        Topic.HELLO: r"""
            guten|bonjour|bonsoir|hola|hello|hi|hey|hail|greetings|good (?:morning|day|evening|afternoon)
            |evening|morning|well met|howdy
            |ahoy|yo|hallo|salutations|knock knock
        """,
        Topic.SMALL_TALK: r"""
            lol|haha|tell me|sing|song|joke|dance|play|game|music|fire|sit|adventure|quest|dragon|wizard|moon
            |time is it
            |what time|day is it
        """,
        Topic.FOREIGN: r"""
            [\u0370-\uffff]+|est|que|wie|ist|nicht|gibt|essen|ca va|donde|dove|como|esta|estas|jeg|och|avez
            |quel|quelle
        """,
    }
)
"""Topics of lines that order nothing, the most specific first."""
_EDGES = ' .,!?;:"*'


def topic_of(text: str, *, is_question: bool) -> Topic | None:
    """The topic of a line in plain words. A question praises nothing."""
    core = " ".join(word for word in text.split() if word not in _EDGES)
    found = [topic for topic, pattern in _TALK if pattern.search(core)]
    if not is_question and Topic.INSULT in found:
        return Topic.INSULT
    return next((topic for topic in found if not (is_question and topic is Topic.PRAISE)), None)
