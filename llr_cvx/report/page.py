"""The HTML report of a run: self-contained, without scripts or network access, readable on a phone and on paper.

Every name and value from a table passes through `html.escape`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

import numpy as np

from llr_cvx.detection.explanation import Explanation, Reason
from llr_cvx.detection.screening import ROW_NUMBERING, Detection, threshold_rule
from llr_cvx.proofs.certificate import shown_gap
from llr_cvx.report import svg

#: At most this many outliers get a card, and a row in the table.
MAX_CARDS, MAX_TABLE_ROWS = 60, 1000
#: Features shown on a card, strongest first.
MAX_CARD_FEATURES = 6
#: Content security policy: the page may load nothing, whatever it contains.
SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_report(run: Detection, title: str = "Outliers, and why") -> str:
    """The HTML page, as a string.

    >>> from llr_cvx.detection.screening import detect
    >>> from llr_cvx.detection.estimator import LLRDetector
    >>> from llr_cvx.detection.tables import Frame
    >>> good = Frame("good.csv", ("<i>a", "b"), np.random.default_rng(0).normal(size=(9, 2)), tuple("123456789"))
    >>> new = Frame("new.csv", ("<i>a", "b"), np.array([[9.0, 0.0], [0.1, 0.2]]), ("x", "y"))
    >>> page = render_report(detect(good, new, LLRDetector(threshold=0.1)))
    >>> "<i>a" in page, "&lt;i&gt;a" in page
    (False, True)
    """
    style = files("llr_cvx.report").joinpath("page.css").read_text(encoding="utf-8")
    parts = [_summary(run), _scores(run), _ranked(run), _cards(run), _proof(run), _reading()]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"
    )


def _summary(run: Detection) -> str:
    found, total = len(run.explanations), len(run.test.ids)
    if not found:
        lead = f"None of the {total} test rows scores below the threshold."
    else:
        lead = f"{found} of {total} test rows score{'s' if found == 1 else ''} below the threshold."
        causes = ", ".join(f"{escape(svg.shortened(name, 40))} ({n})" for name, n in run.feature_counts()[:5])
        if causes:
            lead += f" Strongest reasons: {causes}."
    certain = sum(e.certain for e in run.explanations)
    proof = run.detector.solution_.certificate
    facts = [
        (str(found), "outliers"),
        (str(total), "test rows"),
        (str(len(run.inliers.ids)), "known inliers"),
        (str(len(run.test.columns)), "features"),
        (f"{certain} of {found}" if found else "—", "proved below the threshold"),
        (shown_gap(proof.relative_gap, ".1e"), "proven relative gap"),
    ]
    listed = "".join(f"<li><b>{escape(value)}</b> {escape(name)}</li>" for value, name in facts)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in run.notes)
    files_used = f"{escape(run.test.source)} checked against {escape(run.inliers.source)}"
    files_used += f"; {ROW_NUMBERING}" if run.test.numbered else ""
    return f'<p class="soft">{files_used}</p><p class="lead">{lead}</p><ul class="facts">{listed}</ul>{notes}'


def _scores(run: Detection) -> str:
    chart = svg.histogram(run.log_ratio, run.detector.offset_, "Histogram of the log ratios of the test rows")
    rule = escape(threshold_rule(run.detector))
    tau = f"r &lt; {np.exp(run.detector.offset_):.4g}"
    return (
        f'<section><h2>Scores</h2><figure class="wide">{chart}<figcaption>r is the estimated ratio of the density '
        f"of inliers to that of the test rows. Rows with {tau} are called outliers; threshold: {rule}."
        "</figcaption></figure></section>"
    )


def _ranked(run: Detection) -> str:
    if not run.explanations:
        return ""
    rows = []
    for e in run.explanations[:MAX_TABLE_ROWS]:
        name = escape(run.name_of(e.row))
        link = f'<a href="#o{e.rank}">{name}</a>' if e.rank <= MAX_CARDS else name
        why = ", ".join(f"{escape(r.feature)} {_sign(r.contribution)}" for r in e.reasons[:4]) or "no feature selected"
        more = f" and {len(e.reasons) - 4} more" if len(e.reasons) > 4 else ""
        rows.append(
            f'<tr><td class="n">{e.rank}</td><td>{link}</td><td class="n" data-label="r =">{e.ratio:.4g}</td>'
            f'<td class="n" data-label="proven">{_interval(e)}</td><td>{why}{more}</td></tr>'
        )
    rest = len(run.explanations) - MAX_TABLE_ROWS
    hidden = f'<p class="soft">{rest} more outliers are in the scores file.</p>' if rest > 0 else ""
    return (
        '<section><h2>Ranked outliers</h2><table class="ranked"><thead><tr><th class="n">#</th><th>row</th>'
        '<th class="n">r</th><th class="n">proven interval of r</th>'
        "<th>features and their contributions to log r</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{hidden}</section>"
    )


def _cards(run: Detection) -> str:
    if not run.explanations:
        return ""
    drawn = run.explanations[:MAX_CARDS]
    pushes = [r.contribution for e in drawn for r in e.reasons] or [0.0]
    cards = "".join(_card(run, e, (min(pushes), max(pushes))) for e in drawn)
    rest = len(run.explanations) - MAX_CARDS
    hidden = (
        f'<p class="soft">The first {MAX_CARDS} of {len(run.explanations)} outliers are shown.</p>' if rest > 0 else ""
    )
    return f'<section><h2>One by one</h2>{hidden}<div class="cards">{cards}</div></section>'


def _card(run: Detection, e: Explanation, span: tuple[float, float]) -> str:
    name = run.name_of(e.row)
    chart, features = "", '<p class="soft">No feature is selected: the score carries no information.</p>'
    if e.reasons:
        label = f"Contributions to log r of {name}"
        total = sum(abs(r.contribution) for r in e.reasons)
        ordered = sorted(e.reasons, key=lambda r: -abs(r.contribution))
        shown = [r for k, r in enumerate(ordered[:MAX_CARD_FEATURES]) if k == 0 or abs(r.contribution) >= 0.01 * total]
        chart = svg.bars([r.feature for r in shown], [r.contribution for r in shown], span, label)
        chart = f"<figure>{chart}</figure>"
        features = f'<div class="features">{"".join(_feature(r) for r in shown)}</div>'
        if len(e.reasons) > len(shown):
            features += f"<small>Smaller contributions not shown: {len(e.reasons) - len(shown)}. </small>"
    following = ""
    if e.next_feature:
        percent = 100 * e.next_feature.distance
        following = f"Next feature: {escape(e.next_feature.feature)}, {percent:.3g} % short of selection. "
    shared = ""
    if e.shares_with:
        shared = f"Same reasons as {_listing(map(run.name_of, e.shares_with), e.group_size - 1)}. "
    doubt = "" if e.certain else "The proven interval crosses the threshold. "
    return (
        f'<article class="card" id="o{e.rank}"><header><h3>{e.rank}. {escape(name)}</h3>'
        f'<span class="r">r = {e.ratio:.4g}</span></header><small>proven: {_interval(e)}</small>{chart}{features}'
        f"<small>{doubt}{following}{shared}</small></article>"
    )


def _feature(r: Reason) -> str:
    low, high = r.typical
    label = f"{r.feature}: value {r.value:.4g}, inliers {low:.4g} to {high:.4g}"
    words = f"<b>{escape(r.feature)}</b> = {r.value:.5g}, {escape(r.place)}"
    return f"<div><span>{words}, weight {r.weight:.3g}</span>{svg.in_range(r.value, low, high, label)}</div>"


def _proof(run: Detection) -> str:
    solution = run.detector.solution_
    proof = solution.certificate
    certificate = {
        "status": f"{solution.status}: {solution.message}",
        "objective J(W)": f"{proof.primal:.12g}",
        "proven lower bound on the optimum": f"{proof.dual:.12g}",
        "relative gap": shown_gap(proof.relative_gap, ".2e"),
        "solver": f"{solution.solver}, {solution.n_iter} iterations, {solution.seconds:.2f} s",
    }
    graph = run.detector.solution_.problem.graph
    parameters = {key.replace("_", " "): _shown(value) for key, value in run.parameters().items()}
    parameters["similarity graph"] = (
        f"{len(graph.edges)} edges, {graph.n_components} connected component(s), {len(graph.isolated)} isolated row(s)"
    )
    return (
        f"<section><h2>Certificate</h2>{_pairs(certificate)}</section>"
        f"<section><h2>Parameters</h2>{_pairs(parameters)}</section>"
    )


def _reading() -> str:
    return (
        "<section><h2>How to read this page</h2>"
        "<p>Each row has its own few weights w, found together for all rows as the optimum of one convex problem. "
        "log r = log(n/n′) + the sum of its contributions w·x. A bar to the left (negative contribution) makes the "
        "row look less like an inlier, a bar to the right more.</p>"
        "<p>The proven interval contains r at the exact optimum of that problem: it bounds the error of the "
        "computation, not the sampling error. The grey band is the 5 % to 95 % range of the known inliers. A "
        "feature “short of” selection by a small percentage nearly made it into the explanation.</p></section>"
    )


def _pairs(items: dict[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in items.items()) + "</dl>"


def _listing(names: Iterable[str], total: int, limit: int = 8) -> str:
    shown = [escape(name) for name in names][:limit]
    return ", ".join(shown) + (f" and {total - len(shown)} more" if total > len(shown) else "")


def _interval(e: Explanation) -> str:
    low, high = np.exp(e.interval)
    return f"{low:.4g} to {high:.4g}"


def _sign(value: float) -> str:
    return f"{value:+.2g}".replace("-", "−")


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
