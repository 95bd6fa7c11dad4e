"""Page of a result: one XHTML file with plots, without scripts or external resources."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from attrs import asdict

from footlights_bench.scenario.report.plots import event_rate, losses, percentile_curves, queues, throughput, timelines
from footlights_bench.scenario.report.text import (
    LATENCY_HEADINGS,
    MET,
    PART_HEADINGS,
    TARGET_HEADINGS,
    latency_rows,
    lateness,
    part_rows,
    played,
    turns,
    verdict_rows,
)
from footlights_bench.scenario.verdict import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights_bench.scenario.result import Result

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --faint: #6b7686; --rule: #d9dee5;
  --c0: #2563c9; --c1: #c2410c; --c2: #0f8a5f; --c3: #8b3fc4; --c4: #b0891a; --bad: #c81e3a; --good: #0f8a5f; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e9f0; --faint: #93a0b2; --rule: #2d3541;
  --c0: #6ea5ff; --c1: #ff9a5c; --c2: #4cc99a; --c3: #c792f5; --c4: #e0bb52; --bad: #ff6b81; --good: #4cc99a; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { margin-bottom: 0; } .about, .facts, figcaption { color: var(--faint); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; text-align: right; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; } th:last-child, td:last-child { padding-right: 0; }
.wide { margin: 1rem 0; overflow-x: auto; }
@media (max-width: 36rem) { th, td { padding-right: .5rem; font-size: 13px; } }
.verdict { font-size: 1.25rem; font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
figure { margin: 2rem 0; overflow-x: auto; } figcaption { font-weight: 600; margin-bottom: .25rem; }
svg { width: 100%; min-width: 40rem; height: auto; font: 11px system-ui, sans-serif; } svg text { fill: var(--faint); }
.grid { stroke: var(--rule); } .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } polyline.c3 { stroke-dasharray: 8 4; } .shade { fill: var(--rule); opacity: .45; }
.key { stroke: none; } .key.c0 { fill: var(--c0); } .key.c1 { fill: var(--c1); }
.key.c2 { fill: var(--c2); } .key.c3 { fill: var(--c3); } .key.c4 { fill: var(--c4); }
.accept { fill: var(--faint); } .first { fill: var(--c4); } .speak { fill: var(--c0); } .commit { fill: var(--c3); }
.stopped { fill: var(--c1); } .failed text { fill: var(--bad); font-size: 8px; } .turn:hover { opacity: .6; }
"""


def page(result: Result) -> str:
    name = escape(result.scenario.name)
    return (
        '<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>'
        f'<meta name="viewport" content="width=device-width"/><title>{name}</title><style>{_STYLE}</style></head>'
        f"<body>{_head(result)}{_targets(result)}{_table(LATENCY_HEADINGS, latency_rows(result))}"
        f"{_table(PART_HEADINGS, part_rows(result))}{_plots(result)}{_facts(result)}</body></html>\n"
    )


def _head(result: Result) -> str:
    trouble = result.scenario.trouble
    sentences = [
        f"{played(result)}.",
        f"Measured against {result.system}: {turns(result)}.",
        f"T{lateness(result)[1:]}.",
        *(f"{each}." for each in result.warnings),
    ]
    if result.aborted:
        sentences.append(f"The run ended before its plan: {result.aborted}.")
    if trouble.cut_share:
        sentences.append(f"{result.cuts:,} connections were cut.")
    if trouble.stalled_clients:
        sentences += [
            f"{trouble.stalled_clients:,} stalled clients missed {result.gaps:,} events, or received them joined;",
            f"the server refused {result.turned_away:,} of the clients.",
        ]
    quick = '<p class="bad">A quick run: a smoke test, not a measurement.</p>' if result.quick else ""
    return (
        f'<h1>{escape(result.scenario.name)}</h1><p class="about">{escape(result.scenario.about)}</p>'
        f"<p>{escape(' '.join(sentences))}</p>{quick}"
    )


def _targets(result: Result) -> str:
    if not result.verdicts:
        return ""
    missed, undecided = len(result.missed), len(result.undecided)
    verdict = f"{missed} of {len(result.verdicts)} targets missed" if missed else "All targets met"
    if undecided and not missed:
        verdict = f"{undecided} of {len(result.verdicts)} targets undecided"
    if result.is_invalid:
        verdict = "Invalid: these may be figures of the harness, not of the server"
    if result.failed and not missed:
        verdict += f", though {result.failed:,} turns failed"
    kind = "good" if result.exit_code() == 0 and not result.failed else "bad"
    headline = "" if result.quick else f'<p class="verdict {kind}">{verdict}</p>'
    return headline + _table(TARGET_HEADINGS, verdict_rows(result))


def _plots(result: Result) -> str:
    samples, warm_up = result.samples, result.scenario.load.warm_up
    plots = (
        percentile_curves(result.latencies, result.verdicts),
        throughput(samples, warm_up),
        event_rate(samples, warm_up),
        queues(samples, warm_up),
        losses(samples, warm_up),
        timelines(result.timelines),
    )
    return "".join(plots)


def _facts(result: Result) -> str:
    facts = {"when": result.at, **asdict(result.machine), "seed": result.scenario.load.seed}
    return f'<p class="facts">{escape(", ".join(f"{name}: {value}" for name, value in facts.items()))}</p>'


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str) -> str:
    return f'<td class="bad">{text}</td>' if text == MET[Standing.MISSED] else f"<td>{escape(text)}</td>"
