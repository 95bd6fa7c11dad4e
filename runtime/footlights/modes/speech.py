"""English phrases that begin a clause, and classes of words, by which a clause is read."""

from __future__ import annotations

from enum import Enum, auto

from footlights.modes.words import PhraseTable, phrase_list, word_set


class Lead(Enum):
    """What a phrase at the beginning of a clause makes of the words after it."""

    OPENER = auto()
    """Nothing: a greeting, a connective or a courtesy."""
    NOW = auto()
    """A courtesy or an order of steps, as only requests have them."""
    ASKING = auto()
    """A request, if a verb follows."""
    ASKING_ING = auto()
    """A request, if a verb in -ing follows."""
    WANTING = auto()
    """A request, if the name of some work follows."""
    DENYING = auto()
    """A ban on what follows."""
    QUESTION = auto()
    """A question about what follows."""
    TELLING = auto()
    """A request for words about what follows."""
    CONDITION = auto()
    """A condition or an assumption."""


_LEADS: dict[Lead, str] = {
    Lead.OPENER: """
        hi, hello, hey, hey there, hi there, hello there, good morning, good evening, dexi, ok, okay, alright, all
        right, right, so, well, now, and, also, but, or, either, just, only, actually, simply, quickly, yes, yeah, sure,
        great, cool, perfect, thanks, thank you, um, uh, oh, wait, hmm, for me, if possible, if you can, if you could,
        when you can, when you have time, first of all, to start, really, maybe, perhaps, again, instead, say
    """,
    Lead.NOW: """
        please, pls, kindly, then, next, finally, after that, afterwards, and then, now please, then please, first,
        firstly, secondly, lastly, once done, when done
    """,
    Lead.ASKING: """
        can you, could you, would you, will you, can we, could we, can you please, could you please, would you please,
        can you also, could you also, can i ask you to, may i ask you to, could i ask you to, can i get you to, i want
        you to, i'd like you to, i would like you to, i need you to, i'd love you to, i'm asking you to, i want to, i'd
        like to, i would like to, i need to, i wish to, we want to, we need to, we'd like to, we would like to, we
        should, let's, lets, let us, help me, help me to, help us, go ahead and, go and, you should, you must, you need
        to, you can, you could, you may, make sure to, make sure you, be sure to, try to, remember to, feel free to,
        it's time to, time to, your task is to, your job is to, would you be able to, could you possibly, i was
        wondering if you could, i wonder if you could, any chance you could, any chance you can, it would be great if
        you could, it'd be great if you could, it would be nice if you could, i'd appreciate it if you could, i would
        appreciate it if you could, i'd be grateful if you could, why don't you, why don't we, why not, proceed to,
        continue to, start to, begin to, don't forget to, do not forget to, dont forget to, never forget to, don't
        hesitate to, do not hesitate to, dont hesitate to, please don't forget to, please don't hesitate to,
        i'd like dexi to, i want dexi to
    """,
    Lead.ASKING_ING: """
        would you mind, do you mind, how about, start, begin, try, keep, continue, consider
    """,
    Lead.WANTING: """
        i need, i want, i'd like, i would like, i'd love, we need, we want, we'd like, we would like, give me, give us,
        get me, get us, bring me, can i have, could i have, can i get, could i get, can we have, could we have, can we
        get, may i have, i'm after, time for, let's have, let me have, i'll take, order me
    """,
    Lead.DENYING: """
        don't, do not, dont, never, not, no, no need to, no need for, there's no need to, there is no need to, you don't
        need to, you do not need to, you needn't, please don't, please do not, can you not, could you not, i don't want
        you to, i do not want you to, i don't want to, i do not want to, i don't want, i do not want, i don't need, i do
        not need, i don't need you to, i'd rather not, i would rather not, i'd rather you didn't, i would rather you
        didn't, let's not, let us not, without, without you, without actually, without even, instead of, rather than,
        stop, avoid, skip, refrain from, you must not, you mustn't, you shouldn't, you should not, you can't, you
        cannot, you may not, we don't need to, we don't need, we shouldn't, we should not, make sure not to, be sure not
        to, make sure you don't, try not to, no more, hold off on, hold off, cancel
    """,
    Lead.QUESTION: """
        how, what, what's, whats, why, when should, when do, when does, when did, when is, when was, when will, when
        can, where, where's, who, who's, whose, which, is, isn't, are, aren't, am, was, were, does, doesn't, did,
        didn't, do i, do we, do you, do they, do people, don't you, have you, has, have, had, should, shouldn't, must,
        may i, can i, could i, can we not, can it, can they, can one, can a, can an, can the, could it, could they,
        could a, could the, would it, would they, would a, would the, would that, will it, will they, will a, will the,
        would you rather, would you say, would you recommend, could you have, can you remember, how come, what if, are
        you able to, is it possible to, would you ever, did you ever, can you still, could you ever, can you even
    """,
    Lead.TELLING: """
        explain, describe, define, tell me, tell us, teach me, show me how, show me what, show me why, clarify, discuss,
        elaborate, outline how, walk me through, talk me through, run me through, run us through, take me through,
        remind me, help me understand, help me to understand, i want to know, i'd like to know, i would like to know, i
        want to understand, i'd like to understand, i want to learn, i'd like to learn, i wonder, i'm curious, i was
        wondering, translate, interpret, rewrite, rephrase, paraphrase, spell, pronounce, answer, name, give me an
        example, say whether
    """,
    Lead.CONDITION: """
        if, when, whenever, while, imagine, suppose, supposing, assume, assuming, because, since, although, though,
        unless, after, before, until, once, as, where, pretend
    """,
}
LEADS = PhraseTable((phrase, lead) for lead, text in _LEADS.items() for phrase in phrase_list(text))
"""The phrases that begin a clause."""

FILLERS = word_set("""
    a an the some any my your our his her its their it this that these those them him me us you one ones all again
    now please for once more too also as well then just first next quickly here there right away thanks thank at and
    or something anything stuff thing things dexi do can will would mind of ,
""")
"""Words that do not say what to work on."""

FINITE = word_set("""
    is are was were be has have had can could will would should may might must do does did shows show suggests
    suggest means mean seems works work takes says tells isn't aren't wasn't doesn't don't finds found matters helps
    needs
""")
"""Finite verbs: the word before one of them is a noun."""

DETERMINERS = word_set("""
    a an the some any my your our his her its their it this that these those them me us you all every each another
    one both two three
""")
"""Words that begin a noun phrase."""

PREPOSITIONS = word_set("""
    for in of on about with within without through over from by to at across whether how what which who if as like
    than into using that where when while because so and or , per
""")
"""Words that begin another part of a sentence, so that the noun phrase before them is complete."""

NOTHING = word_set("nothing none nobody no not")
"""Words that leave a verb before them without an object: nothing is to be done."""

OWNED = word_set("the my your our his her its their this that these those last")
"""Words before something that exists already, and so is not asked for."""
