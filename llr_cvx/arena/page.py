"""The HTML page of a run: self-contained, without scripts or network access, readable on a phone and on paper.

Names, reasons and the output of entries pass through `html.escape`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from llr_cvx.arena import charts, tables
from llr_cvx.arena.judge import STATUSES
from llr_cvx.report.page import SECURITY_POLICY

Result = Mapping[str, Any]

#: Failures that get a card, and problems whose chart is shown at once; the other charts are folded away.
MAX_CARDS, OPEN_CHARTS, MAX_CHARTS = 100, 9, 60


def render(document: Result, title: str = "Arena") -> str:
    """The page of a run as a string."""
    style = "".join(
        files(package).joinpath("page.css").read_text(encoding="utf-8")
        for package in ("llr_cvx.report", "llr_cvx.arena")
    )
    entries = [one["entry"] for one in document["summary"]]
    parts = [_lead(document), _board(document), _profile(document, entries), _gaps(document, entries)]
    parts += [_failures(document), _rows(document, entries), _reading(document)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"
    )


def _lead(document: Result) -> str:
    rows, conditions = document["results"], document["conditions"]
    proved = sum(row["accepted"] for row in rows)
    facts = [
        (str(len(document["summary"])), "entries" if len(document["summary"]) != 1 else "entry"),
        (str(len({row["instance"] for row in rows})), "problems"),
        (f"{proved} of {len(rows)}", "answers proved"),
        (f"{conditions['tol']:g}", "relative gap to prove"),
        (f"{conditions['time_limit']:g} s", "time limit"),
    ]
    listed = "".join(f"<li><b>{escape(value)}</b> {escape(name)}</li>" for value, name in facts)
    first, *rest = tables.conclusion(document).splitlines()
    notes = "".join(f'<p class="note">{escape(line)}</p>' for line in rest)
    return f'<p class="lead">{escape(first)}</p><ul class="facts">{listed}</ul>{notes}'


def _board(document: Result) -> str:
    """Entries by the number of proved answers, then by time; columns of statuses that do not occur are left out."""
    shown = [status for status in STATUSES if status == "proved" or any(one[status] for one in document["summary"])]
    head = "".join(f'<th class="n">{escape(name)}</th>' for name in (*shown, "seconds"))
    body = ""
    for one in document["summary"]:
        counts = "".join(f'<td class="n">{one[status]}</td>' for status in shown)
        body += f'<tr><td><code>{_name(one["entry"])}</code></td>{counts}<td class="n">{one["seconds"]:.2f}</td></tr>'
    return (
        '<section><h2>Entries</h2><div class="scroll"><table class="results"><thead><tr><th>entry</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _profile(document: Result, entries: Sequence[str]) -> str:
    proved = [row for row in document["results"] if row["accepted"]]
    if not proved:
        return ""
    chart = charts.profile_chart(document["results"], entries)
    return (
        f"<section><h2>Performance profile</h2>{_legend(entries, proved)}"
        f'<figure class="profile">{chart}<figcaption>How many '
        "problems an entry proves within a given time. Higher and further left is better; a curve that ends below 1 "
        "never proves the rest.</figcaption></figure></section>"
    )


def _gaps(document: Result, entries: Sequence[str]) -> str:
    """One chart per problem on which some entry gave iterates, the largest problems first."""
    tol = document["conditions"]["tol"]
    by_problem: dict[str, list[Result]] = {}
    for row in document["results"]:
        by_problem.setdefault(row["instance"], []).append(row)
    traced = [rows for rows in by_problem.values() if any(row["curve"] for row in rows)]
    traced.sort(key=lambda rows: -rows[0]["N"] * rows[0]["d"])
    if not traced:
        return ""
    drawn = [
        f"<figure><h3>{escape(rows[0]['instance'])}</h3>{charts.gap_chart(rows, entries, tol)}</figure>"
        for rows in traced[:MAX_CHARTS]
    ]
    legend = _legend(entries, [row for rows in traced for row in rows if row["relative_gap"] is not None])
    more = "".join(drawn[OPEN_CHARTS:])
    folded = f'<details><summary>{len(drawn) - OPEN_CHARTS} more</summary><div class="charts">{more}</div></details>'
    return (
        f'<section><h2>Gap against time</h2>{legend}<div class="charts">{"".join(drawn[:OPEN_CHARTS])}</div>'
        f'{folded if more else ""}<p class="soft">J of each iterate, recomputed, against the proven lower bound of J*. '
        "Dashed: the gap to prove. A circle marks the last iterate, or an answer without iterates.</p></section>"
    )


def _legend(entries: Sequence[str], drawn: Sequence[Result]) -> str:
    """The colours of the entries that have one of these rows."""
    shown = {row["entry"] for row in drawn}
    items = "".join(
        f'<li><svg viewBox="0 0 26 10" aria-hidden="true"><line x1="0" y1="5" x2="26" y2="5" stroke-width="3" '
        f'class="s{k % charts.COLOURS}"/></svg><code>{_name(entry)}</code></li>'
        for k, entry in enumerate(entries)
        if entry in shown
    )
    return f'<ul class="legend">{items}</ul>'


def _failures(document: Result) -> str:
    failed = [row for row in document["results"] if not row["accepted"]]
    if not failed:
        return ""
    hidden = f'<p class="soft">The first {MAX_CARDS} of {len(failed)} are shown.</p>' if len(failed) > MAX_CARDS else ""
    cards = "".join(_card(row) for row in failed[:MAX_CARDS])
    return f'<section><h2>What is not proved, and why</h2>{hidden}<div class="cards">{cards}</div></section>'


def _name(entry: str) -> str:
    return f'<span title="{escape(entry, quote=True)}">{escape(tables.label(entry))}</span>'


def _badge(status: str) -> str:
    return f'<span class="badge {status.replace(" ", "-")}">{escape(status)}</span>'


def _card(row: Result) -> str:
    details = "".join(f"<p>{escape(words)}</p>" for words in [row["reason"], *row["notes"]] if words)
    total = sum(row["violations"].values())
    if row["violations"] and total > 0:
        shares = {name: value / total for name, value in row["violations"].items()}
        bars = "".join(
            f'<span class="{name}" style="width:{100 * share:.1f}%"></span>' for name, share in shares.items()
        )
        keys = "".join(
            f'<span class="key"><i class="{name}"></i>{name} {share:.0%}</span>' for name, share in shares.items()
        )
        details += f'<div class="shares">{bars}</div><small>{keys}of the gap</small>'
    for label, key in (("should be zero", "should_be_zero"), ("should be fused", "should_be_fused")):
        if row[key]:
            listed = ", ".join(f"({i},&nbsp;{k})" for i, k in row[key])
            details += f"<p>{label}: {listed}</p>"
    printed = f"<pre>{escape(row['output'].strip())}</pre>" if row["output"].strip() else ""
    return (
        f'<article class="card"><header><h3>{escape(row["instance"])}</h3>{_badge(row["status"])}</header>'
        f"<small><code>{_name(row['entry'])}</code>, {row['seconds']:.2f} s</small>{details}{printed}</article>"
    )


#: Columns of the table of all results that a phone does not show.
_EXTRA = frozenset({"N", "d", *(f"to {name}" for name in tables.TIMES), "monotone", "MB"})


def _rows(document: Result, entries: Sequence[str]) -> str:
    kinds = ["" if name in ("instance", "status", "monotone") else "n" for name in tables.COLUMNS]
    kinds = [
        f"{kind} extra".strip() if name in _EXTRA else kind for kind, name in zip(kinds, tables.COLUMNS, strict=True)
    ]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for kind, name in zip(kinds, tables.COLUMNS, strict=True))
    parts = []
    for entry in entries:
        body = ""
        for row in (row for row in document["results"] if row["entry"] == entry):
            shown = [_badge(cell) if cell in STATUSES else escape(cell) for cell in tables.cells(row)]
            body += "<tr>" + "".join(f'<td class="{k}">{c}</td>' for k, c in zip(kinds, shown, strict=True)) + "</tr>"
        parts.append(
            f'<h3><code>{_name(entry)}</code></h3><div class="scroll"><table class="results"><thead><tr>{head}</tr>'
            f"</thead><tbody>{body}</tbody></table></div>"
        )
    return f"<section><h2>All results</h2>{''.join(parts)}</section>"


def _reading(document: Result) -> str:
    statuses = "".join(f"<dt>{_badge(name)}</dt><dd>{escape(words)}</dd>" for name, words in STATUSES.items())
    return (
        f"<section><h2>How to read this page</h2><dl>{statuses}</dl>"
        "<p>J(W) is recomputed from W and compared with a proven lower bound of the optimum J*. What an entry says "
        "about itself is never counted for it. The gap of a W is a sum of terms, none negative, one per optimality "
        "condition: <b>fit</b> (α is the slope of the loss), <b>network</b> (U along the difference of weights) and "
        "<b>selection</b> (weights only where |v| is largest). “J_eps”: J rises, but the smoothed J never does.</p>"
        f'<p class="soft">{escape(tables.conditions(document["conditions"]))}</p></section>'
    )
