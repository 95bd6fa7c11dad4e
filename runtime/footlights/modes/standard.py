"""Standard rules, for English.

Ledgers hold the ids of rules, so an id never changes its meaning.
"""

from __future__ import annotations

from footlights.modes.record import Activity, Condition
from footlights.modes.rules import USING, IntentRule, IntentRules, VetoRule
from footlights.modes.words import phrase_list, word_set

SOURCES = word_set("""
    document documents doc docs paper papers report reports interview interviews archive archives repository
    repositories repo file files folder folders article articles transcript transcripts corpus database databases
    records literature studies index
""")
"""Words for what can be searched."""
ARTIFACTS = word_set("""
    report reports cohort cohorts table tables chart charts graph graphs artifact artifacts dataset datasets
    spreadsheet csv dashboard file files population evidence
""")
"""Words for what can be made and kept."""
MEASURES = word_set("""
    adherence engagement cohort cohorts scenario scenarios arm arms drop-out dropout churn retention hypothesis
    hypotheses intervention interventions simulation simulations runs rate rates
""")
"""Words for what can be measured."""
_WORK = (Condition.WORK_REQUESTED,)
_WORK_WITH_TOOLS = (Condition.WORK_REQUESTED, Condition.TOOLS_NEEDED)
_SIMULATION = (Condition.WORK_REQUESTED, Condition.TOOLS_NEEDED, Condition.ARTIFACTS)
_KEPT = (Condition.TOOLS_NEEDED, Condition.ARTIFACTS)
DOING = phrase_list("""
    run, do, perform, conduct, carry out, start, launch, execute, kick off, begin, repeat, rerun, re-run, redo,
    schedule, set up, try
""")
"""Verbs that ask for work together with its name."""

STANDARD_RULES = IntentRules(
    rules=(
        # -- search
        IntentRule(
            id="search.verb",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            verbs=phrase_list("search, look up, query"),
            never_before=word_set("engine engines results bar party history terms"),
        ),
        IntentRule(
            id="search.research",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            verbs=phrase_list("research, investigate"),
            never_before=word_set("on in into from by at and"),
        ),
        IntentRule(
            id="search.find",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            verbs=phrase_list("""
                find, locate, dig up, look for, list, fetch, retrieve, show me, get me, pull up, look through, go
                through, scan, browse, check, look in, look into, comb through
            """),
            about=SOURCES,
        ),
        IntentRule(
            id="search.read",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            verbs=phrase_list("summarise, summarize, review, read, skim, quote, cite"),
            about=SOURCES,
        ),
        IntentRule(
            id="search.ask",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            about=SOURCES,
            asked=word_set("say says mention mentions contain contains talk discuss cover"),
        ),
        IntentRule(
            id="search.thing",
            activity=Activity.SEARCH,
            conditions=_WORK_WITH_TOOLS,
            doing=DOING,
            things=word_set("search searches query lookup"),
            wanted=True,
        ),
        # -- simulate
        IntentRule(
            id="simulate.verb",
            activity=Activity.SIMULATE,
            conditions=_SIMULATION,
            verbs=phrase_list("simulate, re-simulate, resimulate"),
        ),
        IntentRule(
            id="simulate.model",
            activity=Activity.SIMULATE,
            conditions=_SIMULATION,
            verbs=("model",),
            about=MEASURES,
        ),
        IntentRule(
            id="simulate.thing",
            activity=Activity.SIMULATE,
            conditions=_SIMULATION,
            doing=DOING,
            things=word_set("simulation simulations sim sims scenario scenarios experiment experiments"),
            wanted=True,
        ),
        # -- evaluate
        IntentRule(
            id="evaluate.verb",
            activity=Activity.EVALUATE,
            conditions=_WORK,
            verbs=phrase_list("analyse, analyze, evaluate, assess, run the numbers, crunch the numbers, extract"),
        ),
        IntentRule(
            id="evaluate.measure",
            activity=Activity.EVALUATE,
            conditions=_WORK,
            verbs=phrase_list("""
                compare, compute, calculate, measure, estimate, forecast, predict, project, test, check, score, rank,
                count, quantify, validate, verify
            """),
            about=MEASURES,
        ),
        IntentRule(
            id="evaluate.thing",
            activity=Activity.EVALUATE,
            conditions=_WORK,
            doing=(*DOING, "make"),
            things=word_set("analysis analyses evaluation assessment comparison forecast"),
            wanted=True,
        ),
        # -- generate
        IntentRule(
            id="generate.thing",
            activity=Activity.GENERATE,
            conditions=(Condition.ARTIFACTS,),
            doing=phrase_list("""
                generate, create, produce, write, build, make, draft, compile, prepare, export, save, draw, assemble,
                put together, synthesise, synthesize
            """),
            things=ARTIFACTS,
            wanted=True,
        ),
        # -- change and delete
        IntentRule(
            id="change.thing",
            activity=Activity.CHANGE,
            conditions=_KEPT,
            doing=phrase_list("update, edit, modify, rename, extend, append to, add to, correct, amend"),
            things=ARTIFACTS,
        ),
        IntentRule(
            id="delete.verb",
            activity=Activity.DELETE,
            conditions=_KEPT,
            verbs=phrase_list("delete, erase, wipe, purge, overwrite, destroy, truncate"),
            destructive=True,
        ),
        IntentRule(
            id="delete.thing",
            activity=Activity.DELETE,
            conditions=_KEPT,
            doing=phrase_list("drop, clear, remove, reset, empty, discard, throw away, replace, get rid of, trash"),
            things=SOURCES | ARTIFACTS | word_set("run runs data everything results history simulations"),
            destructive=True,
        ),
        # -- tools and things without a name
        IntentRule(
            id="tool.named",
            activity=Activity.TOOL,
            conditions=(Condition.TOOLS_NEEDED,),
            doing=USING,
            things=word_set("tool tools engine pipeline workflow script command job"),
        ),
        IntentRule(
            id="unnamed.run",
            activity=Activity.UNNAMED,
            conditions=(Condition.TOOLS_NEEDED,),
            verbs=phrase_list("run it, run that, run this, run them, run these, rerun it, execute it, execute that"),
            never_before=word_set("by past"),
        ),
        IntentRule(
            id="unnamed.go",
            activity=Activity.UNNAMED,
            conditions=(Condition.TOOLS_NEEDED,),
            verbs=phrase_list("do it, do that, do this, go ahead, run, execute, start it, start, proceed, go for it"),
            alone=True,
        ),
    ),
    vetoes=(
        VetoRule(
            id="veto.no_tools",
            phrases=phrase_list("""
                no tools, no tool calls, without tools, without any tools, without using tools, without using any
                tools, don't use tools, don't use any tools, do not use tools, do not use any tools, don't call any
                tools, do not call any tools, no-tools, no-tool
            """),
        ),
        VetoRule(
            id="veto.run_nothing",
            phrases=phrase_list("""
                don't run anything, do not run anything, don't execute anything, do not execute anything, without
                running anything, without executing anything, no execution, run nothing, don't start anything, do not
                start anything, execute nothing, don't do anything yet
            """),
        ),
        VetoRule(id="veto.only_talk", phrases=phrase_list("just chat, only chat, just talk, only talk, words only")),
        VetoRule(
            id="veto.taken_back",
            phrases=phrase_list("""
                never mind, nevermind, forget it, forget that, scratch that, cancel that, on second thought no, just
                kidding, without running it, without actually running it, without executing it, without actually
                executing it, don't run it, do not run it, don't actually run it, do not actually run it
            """),
            takes_back=True,
        ),
        VetoRule(
            id="veto.refused",
            phrases=phrase_list("""
                no, nope, nah, not now, not yet, not today, don't, do not, dont, please don't, don't do it, don't do
                that, do not do it, do not do that, no wait, on second thought, on second thoughts, no way, stop
            """),
            takes_back=True,
            alone=True,
        ),
    ),
)
