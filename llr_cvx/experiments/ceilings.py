"""How well the classes can be told apart by methods that are given every label: ceilings for Table 2.

A detector sees no label of an outlier. Its AUC can exceed that of a supervised classifier by luck or by a leak, hardly
by skill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from llr_cvx.arrays import BoolArray, FloatArray
from llr_cvx.experiments import statistics, tables
from llr_cvx.experiments.benchmarks import BENCHMARKS, load_benchmark
from llr_cvx.experiments.printed import PRINTED_TRIALS, TABLE2
from llr_cvx.experiments.protocol import Protocol
from llr_cvx.experiments.session import Setting, run_and_store
from llr_cvx.experiments.trials import Measure, Trial

#: Folds of the cross-validation, and how often it is repeated with other folds.
FOLDS, REPEATS = 5, 3

TREES = 100


@dataclass(frozen=True)
class Ceiling(Trial):
    """One cross-validation of one set."""

    protocol: Protocol

    def measures(self) -> Mapping[str, Measure]:
        """AUC of held-out rows by both classifiers, and the in-sample ceiling."""
        X, outlier = classes(self.cell, self.protocol)
        classifiers = {
            "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "forest": RandomForestClassifier(TREES, min_samples_leaf=3, random_state=self.trial),
        }
        measures = {name: partial(held_out, model, X, outlier, self.trial) for name, model in classifiers.items()}
        return {**measures, "in-sample": lambda: {"auc": best_in_sample(X, outlier)}}


def classes(name: str, protocol: Protocol) -> tuple[FloatArray, BoolArray]:
    """All rows of a set, and which of them are of the outlier class."""
    data = load_benchmark(name)
    return data.X, np.asarray(data.labels == data.outlier_class(protocol.inliers, protocol.vehicle_outlier))


def held_out(model: ClassifierMixin, X: FloatArray, outlier: BoolArray, seed: int) -> dict[str, float]:
    """AUC of predictions for rows that took no part in the fit, all folds together."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    probability = cross_val_predict(model, X, outlier, cv=folds, method="predict_proba")[:, 1]
    return {"auc": float(roc_auc_score(outlier, probability))}


def best_in_sample(X: FloatArray, outlier: BoolArray) -> float:
    """The largest AUC of any fixed function of x: equal rows share a score, the best being their share of outliers.

    >>> X = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> best_in_sample(X, np.array([False, False, False, True]))
    0.8333...
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    share = np.bincount(group.ravel(), outlier) / np.bincount(group.ravel())
    return float(roc_auc_score(outlier, share[group.ravel()]))


def ceilings(setting: Setting, sets: Sequence[str] = BENCHMARKS) -> list[dict[str, Any]]:
    """One row per set: both classifiers, the in-sample ceiling, and how many rows are distinct."""
    repeats = range(min(REPEATS, setting.trials))
    tasks = [Ceiling("ceilings", name, repeat, setting.protocol) for repeat in repeats for name in sets]
    roles = {"inliers": setting.protocol.inliers, "vehicle_outlier": setting.protocol.vehicle_outlier}
    choices = {**roles, "folds": FOLDS, "trees": TREES}
    records, _ = run_and_store(setting, "ceilings", tasks, choices)
    rows = []
    for name in sets:
        X, _ = classes(name, setting.protocol)
        printed = TABLE2[name]["llr"]
        rows.append(
            {
                "set": name,
                **{label: statistics.summarize(aucs).mean for label, aucs in statistics.table(records, name).items()},
                "repeats": len(repeats),
                "rows": len(X),
                "distinct_rows": len(np.unique(X, axis=0)),
                "paper_mean": printed.mean,
                "paper_standard_error": printed.sd / PRINTED_TRIALS**0.5,
            }
        )
    return rows


def section(rows: Sequence[Mapping[str, Any]]) -> str:
    """The ceilings beside LLR's printed values, as Markdown."""
    body = [
        [
            row["set"],
            *(f"{row[k]:.3f}" for k in ("paper_mean", "logistic", "forest", "in-sample")),
            f"{row['distinct_rows']} of {row['rows']}",
            "yes" if above(row) else "no",
        ]
        for row in rows
    ]
    header = ["Set", "LLR, printed", "logistic", "forest", "in-sample", "distinct rows", "printed above both"]
    return "\n\n".join(
        [
            "## Ceilings",
            f"What supervised learning reaches with *all* labels: {FOLDS}-fold cross-validation, "
            f"{rows[0]['repeats']} times, with logistic regression and a forest of {TREES} trees. *In-sample* is the "
            "best that any fixed function of x can do on the very rows it was fitted to: 1 unless equal rows have "
            "different labels. The last column says whether LLR's printed mean exceeds both classifiers by more "
            "than two of its standard errors.",
            tables.markdown(header, body),
        ]
    )


def above(row: Mapping[str, Any]) -> bool:
    """Whether the printed mean of LLR exceeds both classifiers by more than two standard errors."""
    best = max(row["logistic"], row["forest"])
    return bool(row["paper_mean"] - best > 2.0 * row["paper_standard_error"])
