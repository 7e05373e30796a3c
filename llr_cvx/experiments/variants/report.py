"""What the variants show: AUC, and planted features found or missed, from the stored trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llr_cvx.arrays import FloatArray
from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.methods import METHODS
from llr_cvx.experiments.tables import Finding, listed
from llr_cvx.experiments.variants.trials import LLR_DETECTION, MEASURES, cells, labels

#: The methods whose selected features are judged.
SELECTING = ("l1lr", "lokdr", "llr", LLR_DETECTION)

Values = Mapping[str, Mapping[tuple[str, str], FloatArray]]


def read(rows: Sequence[Mapping[str, Any]]) -> Values:
    """The trials by measure, cell and method."""
    return {measure: statistics.by_trial(rows, measure) for measure in MEASURES}


def name(label: str) -> str:
    """The name of a method in tables."""
    return "LLR, detection" if label == LLR_DETECTION else METHODS[label].label


def sections(values: Values) -> str:
    """AUC of all methods, and how well features are found by those that select."""
    auc = [[c, *tables.ranked({label: values["auc"][c, label] for label in labels()}, ".3f")] for c in cells()]
    chosen = [
        [cell, *(" / ".join(f"{np.nanmean(values[m][cell, label]):.2f}" for m in MEASURES[1:]) for label in SELECTING)]
        for cell in cells()
    ]
    return "\n\n".join(
        [
            "## AUC",
            "Mean over the trials; bold: the best and every method that a paired t-test at 5 % does not tell from it. "
            "LLR has the paper's penalties, *LLR, detection* those that suit detection (λ1 = 0.5, λ2 = 0.01).",
            tables.markdown(["outliers", *map(name, labels())], auc),
            "## Planted features found",
            "Precision / recall / share of the planted features among the two most important, each a mean over the "
            "outliers of what their own scores rest on. ℓ1-LR and LoKDR have one set of features for all samples.",
            tables.markdown(["outliers", *map(name, SELECTING)], chosen),
        ]
    )


def findings(values: Values) -> list[Finding]:
    """Where LLR is ahead, where it is not, and what its selection is worth."""
    ahead = compare(values, "auc", "llr", "l1lr")
    own = [cell for cell in cells() if cell.startswith("own features")]
    mean = {key: np.nanmean(aucs) for key, aucs in values["auc"].items()}
    rivals = [label for label in labels() if label not in ("llr", LLR_DETECTION)]
    best = {cell: max(rivals, key=lambda label: mean[cell, label]) for cell in own}
    lead = [
        f"{mean[cell, 'llr']:.3f} against {mean[cell, best[cell]]:.3f} of {name(best[cell])} at "
        f"{cell.partition(', ')[2]}"
        for cell in own
    ]
    recall = [np.nanmean(values["recall"][cell, "llr"]) for cell in cells()]
    precise = [compare(values, "precision", "llr", label)[1] for label in ("l1lr", "lokdr")]
    first = [compare(values, "first_two", "llr", label)[1] for label in ("l1lr", "lokdr")]
    detection = compare(values, "auc", LLR_DETECTION, "llr")
    n = len(cells())
    return [
        Finding(
            "LLR and one common model",
            f"LLR's AUC is significantly above that of ℓ1-LR in {len(ahead[1])} of {n} cases and below it in "
            f"{len(ahead[-1])}: {listed(ahead[-1])}. Where every outlier has features of its own it has "
            f"{listed(lead)}, the best of the others.",
        ),
        Finding(
            "Important features",
            f"LLR's precision is significantly above that of ℓ1-LR in {len(precise[0])} and of LoKDR in "
            f"{len(precise[1])} of {n} cases; the two most important features are planted significantly more often "
            f"than with ℓ1-LR in {len(first[0])} and than with LoKDR in {len(first[1])}. Its recall is between "
            f"{min(recall):.2f} and {max(recall):.2f}: it names one or two features, not all.",
        ),
        Finding(
            "Two settings of λ",
            f"the penalties for detection raise LLR's AUC significantly in {len(detection[1])} of {n} cases "
            f"({listed(detection[1])}) and lower it in {len(detection[-1])} ({listed(detection[-1])}).",
        ),
    ]


def compare(values: Values, measure: str, a: str, b: str) -> dict[int, list[str]]:
    """The cases in which method a is significantly above (1), below (-1) or level with (0) method b."""
    return statistics.compared({cell: (values[measure][cell, a], values[measure][cell, b]) for cell in cells()})
