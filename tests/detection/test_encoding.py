"""Tables of numbers, booleans, dates and categories: encoded by the inliers, explained in their own units."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.pipeline import make_pipeline

import llr_cvx as llr
from llr_cvx.cli import main
from llr_cvx.detection.encoding import levels_of
from llr_cvx.detection.screening import detect

pd = pytest.importorskip("pandas")


def mixed(n, seed, outliers=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["red", "blue", "white"], n, p=[0.4, 0.3, 0.3])
    frame["ok"] = rng.random(n) < 0.8
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    frame.loc[frame.index[:outliers], "colour"] = "green"
    return frame


GOOD, NEW = mixed(90, 0), mixed(40, 1, outliers=3)
POOLED, Y = pd.concat([GOOD, NEW], ignore_index=True), np.repeat([1, -1], [90, 40])


def test_what_is_learned_comes_from_the_known_inliers_alone():
    table = POOLED.assign(a=POOLED["a"].where(POOLED.index != 95))
    encoder = llr.TableEncoder("median").fit(table, Y)
    names = encoder.get_feature_names_out().tolist()
    assert names[3:] == ["ok", "day", "colour = blue", "colour = red", "colour = white", "colour = (not seen)"]
    assert encoder.owner_.tolist() == [0, 1, 2, 4, 5, 3, 3, 3, 3]
    encoded = encoder.transform(table)
    assert encoded[95, 0] == GOOD["a"].median() != table["a"].median()
    assert encoded[90:93, -1].tolist() == [np.sqrt(90)] * 3
    assert not encoded[:90, -1].any()
    assert set(encoded[:, 3]) == {0.0, 1.0}
    assert encoded[0, 4] == (GOOD["day"][0] - pd.Timestamp(0)).days


def test_levels_that_differ_after_a_nul_differ():
    table = pd.DataFrame({"a": ["x", "x\0y", "z"] * 4})
    encoder = llr.TableEncoder().fit(table)
    assert [len(set(column)) for column in encoder.transform(table).T] == [2, 2, 2, 1]
    assert encoder.transform(pd.DataFrame({"a": ["z\0"]}))[0, -1] > 0


def test_missing_values_are_refused_filled_or_marked():
    table = GOOD.assign(a=GOOD["a"].where(GOOD.index != 2), colour=GOOD["colour"].where(GOOD.index != 3))
    with pytest.raises(ValueError, match=r"column 'a' has no number in row 2 but nan: .*missing=\"median\""):
        llr.TableEncoder().fit(table)
    filled = llr.TableEncoder("median").fit(table).transform(table)
    assert filled[2, 0] == table["a"].median()
    assert filled[3, -4:].tolist() == [0.0, 1.0, 0.0, 0.0]  # red
    marked = llr.TableEncoder("indicator").fit(table)
    names = marked.get_feature_names_out().tolist()
    assert marked.transform(table)[2, names.index("a is missing")] == 1.0
    assert marked.transform(table)[3, names.index("colour = (missing)")] == 1.0
    for how in ("median", "indicator"):
        with pytest.raises(ValueError, match="column 'a' has no number in row 5 but oops"):
            llr.TableEncoder(how).fit(GOOD).transform(
                GOOD.assign(a=GOOD["a"].astype(object).where(GOOD.index != 5, "oops"))
            )
    with pytest.raises(ValueError, match="missing must be"):
        llr.TableEncoder("guess").fit(table)


def test_columns_without_information_are_left_out_and_rare_levels_share_one():
    rng = np.random.default_rng(0)
    table = GOOD.assign(same="x", empty=None, who=[f"n{k}" for k in range(90)])
    table["code"] = [f"c{k:02d}" for k in rng.integers(0, 40, 90)]
    table["large"] = [10**25 + k for k in range(90)]  # the same number, as far as numbers can tell
    encoder = llr.TableEncoder().fit(table)
    left_out = {"same": "constant", "empty": "constant", "who": "row names", "large": "constant"}
    assert encoder.left_out_ == left_out
    codes = [name for name in encoder.get_feature_names_out() if name.startswith("code = ")]
    assert len(codes) <= 31
    assert "code = (rare)" in codes


def test_levels_keep_their_digits():
    codes = ["0.3", "01", "1e-7", "12345678901234567890", "12345678901234567891", "x"]
    assert levels_of(pd.Series(codes)).tolist() == ["0.3", "1", "1e-07", *codes[3:]]
    stored = ([1.0, 0.1, -0.0], [1, 0.1, 0], ["1E0", ".10", "0"])
    assert [levels_of(pd.Series(values, dtype=object)).tolist() for values in stored] == [["1", "0.1", "0"]] * 3


def test_text_names_rows_only_if_most_of_them_have_a_value_to_themselves():
    cities = pd.DataFrame({"city": [f"C{k % 40}" for k in range(67)], "who": [f"P{k // 2 + k % 3}" for k in range(67)]})
    assert llr.TableEncoder().fit(cities).left_out_ == {}
    assert llr.TableEncoder().fit(cities[:47]).left_out_ == {"city": "row names"}  # 33 of 47


def test_the_command_and_a_pipeline_give_the_same_scores(tmp_path):
    for name, frame in (("good.csv", GOOD), ("new.csv", NEW)):
        frame.to_csv(tmp_path / name, index=False)
    files = ["--inliers", tmp_path / "good.csv", "--test", tmp_path / "new.csv", "--out", tmp_path / "s.csv"]

    def command(*options):
        done = CliRunner().invoke(main, ["detect", *map(str, files), *options])
        assert done.exit_code == 0, done.output
        return pd.read_csv(tmp_path / "s.csv", float_precision="round_trip")

    encoder = llr.TableEncoder(scaler=llr.InlierScaler())
    plain = make_pipeline(encoder, llr.LLRDetector(threshold=0.5)).fit(POOLED, Y)
    assert command("--threshold", "0.5")["log_ratio"].tolist() == plain[-1].log_ratio_[90:].tolist()
    calibrated = make_pipeline(llr.LLRDetector(fdr=0.1, random_state=0, scaler=encoder)).fit(POOLED, Y)
    scores = command()
    assert scores["log_ratio"].tolist() == calibrated[-1].log_ratio_[90:].tolist()
    assert scores["pvalue"].tolist() == calibrated[-1].pvalues_[90:].tolist()
    again = calibrated.score_samples(mixed(5, 7))
    assert np.isfinite(again).all()


def test_reasons_name_the_column_and_its_value():
    run = detect(GOOD, NEW, llr.LLRDetector(false_alarm=0.05, random_state=0))
    green = [e for e in run.explanations if NEW["colour"].iloc[e.row - 90] == "green"]
    assert len(green) == 3
    for e in green:
        assert str(e.reasons[0]).startswith("colour = green, seen in 0 % of the inliers, contributes -")
        assert run.base + sum(r.contribution for r in e.reasons) == pytest.approx(e.log_ratio, abs=1e-9)
        assert all(r.feature in GOOD for r in (*e.reasons, *e.also_unusual))
    contributions = run.detector.explain()
    assert contributions.shape == POOLED.shape
    np.testing.assert_allclose(contributions.sum(axis=1) + run.base, run.detector.log_ratio_, atol=1e-10)
    assert run.detector.feature_ranking()[green[0].row, 0] == 3
    late = NEW.assign(day=NEW["day"].where(NEW.index != 39, pd.Timestamp("2031-05-05")))
    (found,) = [e for e in detect(GOOD, late, llr.LLRDetector(threshold=0.2)).explanations if e.row == 129]
    assert str(found.reasons[0]).startswith("day = 2031-05-05, above the inliers' 5 % to 95 % range (2024-")


def test_a_column_is_what_it_is_among_the_inliers():
    new = NEW.assign(ok=NEW["ok"].astype(int).astype(object))
    features = detect(GOOD, new, llr.LLRDetector(contamination=0.1)).features
    assert features.columns[4].values[90:].tolist() == [str(ok) for ok in NEW["ok"]]


@pytest.mark.long
def test_held_out_inliers_and_test_rows_are_treated_alike():
    """With levels that the model has not seen: exchanging the rows exchanges their scores, to the last bit."""
    table = POOLED.copy()
    detector = llr.LLRDetector(fdr=0.1, random_state=0, scaler=llr.TableEncoder("indicator", llr.InlierScaler()))
    held = detector.fit(table, Y).calibration_rows_
    table.loc[held[0], "colour"] = "violet"  # seen in no row of the model
    table.loc[held[1], "a"] = np.nan
    table.loc[100, "day"] = pd.NaT
    first = detector.fit(table, Y).log_ratio_
    swapped = np.arange(130)
    for i, j in ((held[0], 100), (held[1], 101), (held[2], 90)):
        swapped[[i, j]] = swapped[[j, i]]
    second = detector.fit(table.iloc[swapped].reset_index(drop=True), Y).log_ratio_
    assert second.tolist() == first[swapped].tolist()


def test_graph_columns_and_an_intercept_belong_to_the_columns_of_the_table():
    detector = llr.LLRDetector(
        contamination=0.1, scaler=llr.TableEncoder(), graph_columns=["colour", "a"], fit_intercept=True
    )
    detector.fit(POOLED, Y)
    assert detector._graph_columns(9).tolist() == [0, 5, 6, 7, 8]
    assert detector.explain().shape == (130, 7)  # and the intercept
    assert detector.explain(NEW).columns.tolist() == [*NEW, "(intercept)"]
    assert detector.score_samples(NEW.to_numpy()).tolist() == detector.score_samples(NEW).tolist()
    with pytest.raises(ValueError, match="graph_columns are left out, since constant"):
        detector.set_params(graph_columns=["a"]).fit(POOLED.assign(a=1.0), Y)
    detector.set_params(graph_columns=None).fit(POOLED, Y)
    with pytest.raises(ValueError, match="the table has no column 'day'"):
        detector.score_samples(NEW.drop(columns="day"))


@pytest.mark.parametrize("count", [3, 30, 31, 40])
@pytest.mark.parametrize("missing", ["refuse", "median", "indicator"])
def test_levels_not_seen_have_a_column_of_their_own_however_many_others_there_are(count, missing):
    table = pd.DataFrame({"code": [f"c{k:02d}" for k in [*range(count), *range(count), 1]]})
    encoder = llr.TableEncoder(missing).fit(table)
    names = [name.removeprefix("code = ") for name in encoder.get_feature_names_out()]
    common = [f"c{k:02d}" for k in range(count if count <= 30 else 29)]
    absent, rare = ["(missing)"] * (missing == "indicator"), ["(rare)"] * (count > 30)
    assert names == [*absent, *rare, *common, "(not seen)"]
    new = pd.DataFrame({"code": ["new", "c01", f"c{count - 1:02d}", *([None] if missing != "refuse" else [])]})
    shown = [names[k] for k in encoder.transform(new).argmax(axis=1)]
    last = {"refuse": [], "median": ["c01"], "indicator": ["(missing)"]}[missing]  # c01 is the most frequent
    assert shown == ["(not seen)", "c01", "(rare)" if count > 30 else f"c{count - 1:02d}", *last]


@pytest.mark.parametrize("site", [["A"], [1], [True], ["x", True]])
def test_columns_that_pandas_calls_categories(site):
    """Parquet hands them out where text is stored by dictionary, as it is where few values repeat."""
    frames = [
        frame.assign(site=pd.Categorical([site[k % len(site)] for k in range(len(frame))])) for frame in (GOOD, NEW)
    ]
    run = detect(*frames, llr.LLRDetector(threshold=0.5))
    assert run.detector.scaler_.left_out_ == ({"site": "constant"} if len(site) == 1 else {})
