"""`llr-cvx detect` as a user runs it."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from sizes import in_long
from sklearn.datasets import load_breast_cancer

from llr_cvx.cli import main
from llr_cvx.cli.cmd_detect import _interval
from llr_cvx.datasets import make_synthetic
from llr_cvx.detection.calibration import benjamini_hochberg
from llr_cvx.detection.estimator import LLRDetector
from llr_cvx.detection.explanation import Explanation


def write(path, X, header, ids=None):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for k, row in enumerate(X):
            writer.writerow([*([ids[k]] if ids else []), *(repr(float(x)) for x in row)])


@pytest.fixture
def files(tmp_path):
    inlier, test, _ = make_synthetic(4, 0, 50, 20, 4)
    names = ["a", "b", "c", "d"]
    write(tmp_path / "good.csv", inlier, names)
    write(tmp_path / "new.csv", test[:, ::-1], ["serial", *names[::-1]], [f"S{k}" for k in range(24)])
    return tmp_path


def detect(where, *arguments, inliers="good.csv", test="new.csv"):
    paths = ["--inliers", str(where / inliers), "--test", str(where / test)]
    return CliRunner().invoke(main, ["detect", *paths, *arguments])


def test_it_prints_the_ranked_outliers_with_their_reasons(files):
    done = detect(files, "--id", "serial", "--contamination", "0.17", "--scale", "none")
    assert done.exit_code == 0, done.output
    inlier, test, _ = make_synthetic(4, 0, 50, 20, 4)
    detector = LLRDetector(contamination=0.17).fit(np.vstack([inlier, test]), np.repeat([1, -1], [50, 24]))
    table = detector.explain_table()
    places = [done.output.index(f"#{e.rank} S{e.row - 50}: r = {e.ratio:.4g}") for e in table]
    assert places == sorted(places)
    for e in table:
        for r in e.reasons:
            assert f"{'abcd'[r.column]} = {r.value:.4g}" in done.output
    assert "proven relative gap" in done.output


def test_scores_json_and_report_agree(files):
    outputs = [files / "scores.csv", files / "all.json", files / "page.html"]
    options = [*("--out", outputs[0]), *("--json", outputs[1]), *("--report", outputs[2])]
    done = detect(files, "--id", "serial", "--tau", "0.3", *map(str, options))
    assert done.exit_code == 0, done.output
    scores = list(csv.DictReader(outputs[0].read_text().splitlines()))
    everything = json.loads(outputs[1].read_text())
    assert [row["id"] for row in scores] == [f"S{k}" for k in range(24)]
    for row, score in zip(scores, everything["scores"], strict=True):
        assert float(row["log_ratio"]) == score["log_ratio"]
        assert list(row) == ["id", "log_ratio", "pvalue", "outlier", "rank", "reasons"]
        assert score["lower"] <= float(row["log_ratio"]) <= score["upper"]
        assert score["relative_to_base"] == pytest.approx(score["log_ratio"] - np.log(24 / 50))
        assert (row["pvalue"], score["pvalue"]) == ("", None)  # a given threshold: nothing was held out
        assert row["outlier"] == str(int(np.exp(score["log_ratio"]) < 0.3))
    assert [o["id"] for o in everything["outliers"]] == [
        row["id"] for row in sorted(scores, key=lambda row: float(row["log_ratio"])) if row["outlier"] == "1"
    ]
    assert everything["parameters"]["threshold"] == pytest.approx(0.3)
    assert everything["certificate"]["status"] == "optimal"
    assert outputs[2].read_text().count('<article class="card"') == len(everything["outliers"])


@pytest.mark.parametrize("scale", ["none", "standard", "robust", "minmax"])
def test_scaling_is_that_of_the_inliers(files, scale):
    from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

    done = detect(files, "--id", "serial", "--threshold", "0.5", "--scale", scale, "--json", str(files / "j.json"))
    assert done.exit_code == 0, done.output
    inlier, test, _ = make_synthetic(4, 0, 50, 20, 4)
    scalers = {"standard": StandardScaler, "robust": RobustScaler, "minmax": MinMaxScaler}
    X = np.vstack([inlier, test])
    if scale != "none":
        X = scalers[scale]().fit(inlier).transform(X)
    expected = LLRDetector(threshold=0.5).fit(X, np.repeat([1, -1], [50, 24])).log_ratio_[50:]
    found = [s["log_ratio"] for s in json.loads((files / "j.json").read_text())["scores"]]
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_parquet_and_options(files):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(files / "good.csv").to_parquet(files / "good.parquet")
    options = ["-k", "3", "--sigma", "1.5", "--lambda1", "0.2", "--lambda2", "0.5", "--intercept", "--tol", "1e-5"]
    done = detect(files, "--id", "serial", *options, "--json", str(files / "j.json"), inliers="good.parquet")
    assert done.exit_code == 0, done.output
    used = json.loads((files / "j.json").read_text())["parameters"]
    assert (used["n_neighbors"], used["sigma"], used["lambda1"], used["lambda2"]) == (3, 1.5, 0.2, 0.5)
    assert used["fit_intercept"] is True
    assert used["solver"] == "FAST"


@pytest.mark.parametrize(("solver", "name"), [("fast", "FAST"), ("irls", "IRLS"), ("exact", "CLARABEL")])
def test_the_solver_can_be_chosen_and_is_named(files, solver, name):
    done = detect(files, "--id", "serial", "--solver", solver)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith(f"{name}: optimal, proven relative gap ")


def test_quiet_and_verbose(files):
    plain, quiet, verbose = (detect(files, "--id", "serial", "--tau", "1", *flag) for flag in ([], ["-q"], ["-v"]))
    assert plain.stderr.startswith("note: more than half")
    assert quiet.stderr == ""
    assert quiet.stdout.splitlines()[:-1] == plain.stdout.splitlines()[:-1]
    assert re.search(r"^ +1  irls +J .*  gap ", verbose.stderr, re.MULTILINE)
    times = re.search(
        r"^reading (\S+) s; fitting and explaining (\S+) s; writing (\S+) s$", verbose.stderr, re.MULTILINE
    )
    assert all(float(seconds) >= 0 for seconds in times.groups())


def test_the_tolerance_follows_the_number_of_rows(files, monkeypatch):
    assert "(asked for 1e-08), " in detect(files, "--id", "serial").stdout
    monkeypatch.setattr("llr_cvx.cli.cmd_detect.TOL_BY_ROWS", {50: 1e-8, 74: 1e-3, np.inf: 0.1})
    assert "(asked for 1e-03), " in detect(files, "--id", "serial").stdout
    assert "(asked for 1e-05), " in detect(files, "--id", "serial", "--tol", "1e-5").stdout


@pytest.mark.long
def test_reading_and_the_page_take_little_of_the_time(tmp_path):
    """A small version of what docs/detect.md measures: at most a quarter of the fit, and a small page."""
    rng = np.random.default_rng(0)
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(rng.normal(size=(3000, 18)).round(4), columns=[f"sensor {k}" for k in range(18)])
    table["type"], table["tested"] = rng.choice(list("abcde"), 3000), rng.random(3000) < 0.8
    table.iloc[:60, 3] += 8.0
    table[1000:].to_csv(tmp_path / "good.csv", index=False)
    table[:1000].to_csv(tmp_path / "new.csv", index=False)
    done = detect(tmp_path, "-v", "--report", str(tmp_path / "p.html"), "--fdr", "0.1")
    assert done.exit_code == 0, done.output
    reading, fitting, writing = map(float, re.findall(r"(?:reading|explaining|writing) (\S+) s", done.stderr))
    assert reading + writing < fitting / 4
    assert 20_000 < (tmp_path / "p.html").stat().st_size < 400_000


def test_lambda_can_be_chosen(files):
    done = detect(files, "--id", "serial", "--choose-lambda", "--json", str(files / "j.json"))
    assert done.exit_code == 0, done.output
    everything = json.loads((files / "j.json").read_text())
    choice, chosen = everything["choice"], everything["parameters"]["lambda1"]
    losses = [loss for (loss,) in choice["loss"]]
    assert chosen == choice["lambda1s"][int(np.argmin(losses))]
    said = (
        f"chosen lambda1 = {chosen:.3g}, lambda2 = 1 out of 7 values of lambda1 from 0.01 to 10: the lowest loss on "
        f"held-out rows over 5 folds, {min(losses):.4f} +- "
    )
    assert said in done.stdout
    assert choice["reason"] in done.stdout
    both = detect(files, "--id", "serial", "--choose-lambda", "--lambda1", "0.1")
    assert both.exit_code == 2
    assert "--lambda1 and --choose-lambda contradict each other" in both.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tau", "1", "--contamination", "0.1"], "--threshold and --contamination contradict each other"),
        (["--fdr", "0.1", "--false-alarm", "0.1"], "--fdr and --false-alarm contradict each other"),
        (["--fdr", "10"], "'--fdr': 10 is not between 0 and 1; for 10 % write 0.1"),
        (["--false-alarm", "0"], "'--false-alarm': 0 is not between 0 and 1"),
        (["--false-alarm", "0.01"], "false_alarm=0.01 needs at least 99 held-out inliers"),
        (["--graph-column", "zzz"], "--graph-column holds 'zzz', but the columns are 'a', 'b', 'c', 'd'"),
        (["--setting", "best"], "'best' is not one of 'paper', 'detection'"),
        (["--sigma", "wide"], "'--sigma': a number > 0 or \"median\" is needed, got 'wide'"),
        (["--sigma", "0"], "got '0'"),
        (["--lambda1", "-1"], "'--lambda1': -1.0 is not in the range x>=0"),
        (["--lambda2", "nan"], "'--lambda2': nan is not a finite number"),
        (["--lambda1", "0", "--lambda2", "0"], "--lambda1 and --lambda2 are both 0"),
        (
            ["--contamination", "15"],
            "'--contamination': 15 is not a share above 0 and at most 0.5; for 15 % write 0.15",
        ),
        (["--contamination", "0.9"], "0.9 is not a share above 0 and at most 0.5; for 0.9 % write 0.009"),
        (["--contamination", "0"], "0 is not a share above 0 and at most 0.5"),
        (["--tau", "0"], "'--tau': 0.0 is not in the range x>0"),
        (["--tol", "-1"], "'--tol': -1.0 is not in the range x>0"),
        (["-k", "0"], "0 is not in the range x>=1"),
        (["--drop", "zzz"], "no column 'zzz'"),
        (["--out", "no/such/place.csv"], "cannot write"),
        (["--solver", "magic"], "'magic' is not one of 'fast', 'irls', 'exact'"),
        (["--json", "-", "--out", "/dev/fd/1"], "--json and --out both write to standard output"),
        (["--report", "page.pdf"], "--report writes an HTML page: page.pdf must end in .html"),
        (["--id", "number"], "has no column 'number'; its columns are 'serial'"),
    ],
)
def test_errors_are_clear_and_nothing_is_written(files, arguments, message):
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    done = detect(files, "--id", "serial", "--report", str(files / "page.html"), *arguments)
    assert done.exit_code != 0
    assert message in done.output
    assert "Traceback" not in done.output
    assert {p.name: p.read_bytes() for p in files.iterdir()} == before


def test_what_is_out_of_range_is_refused_before_files_are_read():
    for option, value in (
        ("--contamination", "15"),
        ("--lambda1", "-1"),
        ("--tol", "0"),
        ("-k", "0"),
        ("--tau", "-1"),
    ):
        done = CliRunner().invoke(main, ["detect", "--inliers", "none.csv", "--test", "none.csv", option, value])
        assert done.exit_code == 2
        assert option in done.output
        assert "no such file" not in done.output


def test_missing_columns_text_and_empty_files_are_refused(files):
    (files / "text.csv").write_text("a,b,c,d\n1,2,red,4\n")
    (files / "fewer.csv").write_text("a,b,c\n1,2,3\n")
    (files / "empty.csv").write_text("")
    for name, message in [
        ("text.csv", "column 'c' holds 'red'"),
        ("fewer.csv", "has 'd', which"),
        ("empty.csv", "is empty"),
        ("none.csv", "no such file"),
    ]:
        done = detect(files, "--out", str(files / "s.csv"), test=name)
        assert done.exit_code == 1
        assert message in done.output
        assert not (files / "s.csv").exists()


def test_a_failing_last_file_leaves_the_first_alone(files, monkeypatch):
    """If the page fails, the scores, written first, are not moved into place either."""
    (files / "scores.csv").write_text("old")

    def fail(run):
        raise ValueError("no page today")

    monkeypatch.setattr("llr_cvx.cli.cmd_detect.render_report", fail)
    before = sorted(p.name for p in files.iterdir())
    done = detect(files, "--id", "serial", "--out", str(files / "scores.csv"), "--report", str(files / "p.html"))
    assert done.exit_code == 1
    assert "no page today" in done.output
    assert (files / "scores.csv").read_text() == "old"
    assert sorted(p.name for p in files.iterdir()) == before


def test_inputs_and_outputs_are_not_overwritten_by_mistake(files):
    before = (files / "new.csv").read_bytes()
    assert "already the name" in detect(files, "--id", "serial", "--out", str(files / "new.csv")).output
    assert (files / "new.csv").read_bytes() == before
    same = str(files / "x")
    assert "already the name" in detect(files, "--id", "serial", "--out", same, "--json", same).output


def test_existing_outputs_are_replaced_whole(files):
    target = files / "scores.csv"
    target.write_text("old " * 100000)
    assert detect(files, "--id", "serial", "--out", str(target)).exit_code == 0
    assert "old" not in target.read_text()


def test_constant_columns_one_row_no_outlier_and_all_outliers(files):
    inlier, test, _ = make_synthetic(3, 0, 30, 6, 0)
    header = ["a", "b", "c", "same"]
    write(files / "g.csv", np.column_stack([inlier, np.full(30, 7.0)]), header)
    write(files / "t.csv", np.column_stack([test, np.full(6, 7.0)]), header)
    write(files / "one.csv", [[4.0, 0.0, 0.0, 8.0]], header)
    done = detect(files, "--tau", "1e-6", inliers="g.csv", test="t.csv")
    assert "0 of 6 test rows are outliers" in done.output
    assert done.output.count(" = base - ") == 5  # never without the lowest scores
    assert "note: left out, since constant among the inliers: 'same'\n" in done.output
    assert "6 of 6 test rows are outliers" in detect(files, "--tau", "1e6", inliers="g.csv", test="t.csv").output
    one = detect(files, "--tau", "0.5", inliers="g.csv", test="one.csv")
    assert "1 of 1 test rows are outliers" in one.output
    assert "'same' differs in 1 test row(s), the first row 1\n" in one.output
    assert "give a threshold" not in one.output
    alone = detect(files, inliers="g.csv", test="one.csv").stdout
    assert "1 of 1 test rows are outliers (p-values, false discovery rate 0.1)" in alone
    assert "#1 row 1: p = 0.0625, r = " in alone  # 15 of the 30 inliers are held out: p = 1/16


@pytest.fixture(scope="module")
def cancer(tmp_path_factory):
    """150 benign rows known, and three batches to check: clean, two fifths malignant, all malignant."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(357)
    benign, malignant = data.data[data.target == 1][order], data.data[data.target == 0]
    where = tmp_path_factory.mktemp("cancer")
    names = [name.replace(" ", "_") for name in data.feature_names]
    batches = {
        "good": benign[:150],
        "clean": benign[150:210],
        "mixed": np.vstack([benign[150:186], malignant[:24]]),
        "bad": malignant[:60],
    }
    for name, X in batches.items():
        write(where / f"{name}.csv", X, names)
    return where


@pytest.mark.parametrize(
    ("batch", "least", "most", "whole"),
    [
        ("clean", 0, 0, "the batch as a whole looks normal"),
        in_long(("mixed", 5, 24, "part of the batch differs")),
        ("bad", 40, 60, "the batch as a whole is BAD"),
    ],
)
def test_outliers_are_told_by_calibrated_pvalues(cancer, batch, least, most, whole):
    out, everything = cancer / "scores.csv", cancer / "all.json"
    done = detect(cancer, "--setting", "detection", "--out", str(out), "--json", str(everything), test=f"{batch}.csv")
    assert done.exit_code == 0, done.output
    assert "(p-values, false discovery rate 0.1)" in done.stdout
    assert "100 of the 150 inliers are held out for p-values: none is below 1/101, so 6 rows must stand" in done.stdout
    assert f"{whole}: test rows score below held-out inliers in " in done.stdout
    rows = list(csv.DictReader(out.read_text().splitlines()))
    p = np.array([float(row["pvalue"]) for row in rows])
    flagged = np.array([row["outlier"] == "1" for row in rows])
    assert least <= flagged.sum() <= most
    assert np.array_equal(flagged, benjamini_hochberg(p, 0.1))
    assert sorted(int(row["rank"]) for row in rows) == list(range(1, 61))
    assert " = base - " in done.stdout  # scores, whatever was decided
    result = json.loads(everything.read_text())
    assert result["batch"]["bad"] == whole.endswith("BAD")
    assert result["parameters"]["held_out"] == 100
    assert [row["pvalue"] for row in result["scores"]] == p.tolist()


@pytest.mark.long
def test_the_seed_decides_which_inliers_are_held_out(cancer):
    first, again, other = (
        detect(cancer, "--seed", seed, "--false-alarm", "0.05", test="mixed.csv").stdout for seed in ("1", "1", "2")
    )
    assert first.splitlines()[:-1] == again.splitlines()[:-1]  # all but the seconds
    assert first.splitlines()[:-1] != other.splitlines()[:-1]
    assert "outliers (p-values, false alarm rate 0.05)" in first


def test_with_too_few_inliers_rows_are_ranked_and_it_says_why(cancer):
    lines = (cancer / "good.csv").read_text().splitlines()
    (cancer / "few.csv").write_text("\n".join(lines[:11]))
    (cancer / "some.csv").write_text("\n".join(lines[:26]))
    few = detect(cancer, "--out", str(cancer / "s.csv"), inliers="few.csv", test="mixed.csv")
    assert few.stdout.startswith("ranked only: 10 inlier(s) are too few to hold some out for p-values; from 20 on")
    assert "outliers" not in few.stdout
    assert few.stdout.count(" = base - ") == 5
    scores = list(csv.DictReader((cancer / "s.csv").read_text().splitlines()))
    assert {(row["outlier"], row["pvalue"]) for row in scores} == {("", "")}
    some = detect(cancer, "--report", str(cancer / "r.html"), inliers="some.csv", test="mixed.csv").stdout
    assert some.startswith("ranked only: 25 inliers are too few to call single rows outliers")
    assert "none is below 1/14, so 43 rows must stand out before any is an outlier (1 with 599 held out)" in some
    assert some.count(": p = 0.0714, r = ") >= 3
    assert "The 5 lowest scores" in (cancer / "r.html").read_text()


def test_conditional_scaling_finds_a_broken_correlation(files):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(160, 1))
    X = np.hstack([a, a + 0.1 * rng.normal(size=(160, 1)), rng.normal(size=(160, 2))])
    X[-8:, 1] *= -1  # usual values, unusual together
    X[-8:, :2] += 1.2 * np.sign(X[-8:, :2])
    write(files / "g.csv", X[:120], list("abcd"))
    write(files / "t.csv", X[120:], list("abcd"))
    found = {}
    for scale in ("standard", "conditional"):
        done = detect(files, "--scale", scale, "--json", str(files / "j.json"), inliers="g.csv", test="t.csv")
        assert done.exit_code == 0, done.output
        found[scale] = [o["test_row"] for o in json.loads((files / "j.json").read_text())["outliers"]]
    assert len(set(found["conditional"]) & set(range(33, 41))) >= 7
    assert len(found["conditional"]) <= 9
    assert len(found["standard"]) < len(found["conditional"])


def test_a_suspicious_inlier_is_named(files):
    inlier, _, _ = make_synthetic(4, 0, 50, 20, 4)
    inlier[7] = 9.0
    write(files / "g.csv", inlier, list("abcd"))
    done = detect(files, "--id", "serial", inliers="g.csv")
    assert "which do not look like the others: row 8" in done.stderr


def test_help_teaches():
    done = CliRunner().invoke(main, ["detect", "--help"])
    assert done.exit_code == 0
    for word in ("--inliers", "--report", "--json", "Examples", "density ratio", "near r = n/n'"):
        assert word in " ".join(done.output.split())


def test_a_number_that_names_the_rows_is_noted(files):
    inlier, test, _ = make_synthetic(4, 0, 50, 20, 4)
    write(files / "g.csv", np.column_stack([np.arange(50), inlier[:, :2]]), ["no", "a", "b"])
    write(files / "t.csv", np.column_stack([np.arange(50, 74), test[:, :2]]), ["no", "a", "b"])
    done = detect(files, "--json", str(files / "j.json"), inliers="g.csv", test="t.csv")
    note = "column 'no' looks like row names: --id no to use it as such, --drop no to ignore it"
    assert done.stderr.count(note) == 1
    assert json.loads((files / "j.json").read_text())["notes"].count(note) == 1
    for option in ("--id", "--drop"):
        cured = detect(files, option, "no", inliers="g.csv", test="t.csv")
        assert cured.exit_code == 0, cured.output
        assert "looks like row names" not in cured.output


def test_a_threshold_that_flags_most_rows_is_noted(files):
    many = detect(files, "--id", "serial", "--threshold", "1")
    assert "more than half of the test rows" in many.stderr
    assert "r = n/n' = 24/50 = 0.48" in many.stderr
    assert "more than half" not in detect(files, "--id", "serial", "--contamination", "0.5").output


def test_rows_without_ids_are_numbered_as_in_their_file(files):
    write(files / "t.csv", make_synthetic(4, 0, 50, 20, 4)[1], ["a", "b", "c", "d"])
    report = files / "p.html"
    done = detect(
        files, "--contamination", "0.2", "--json", str(files / "j.json"), "--report", str(report), test="t.csv"
    )
    assert "rows are numbered from 1 within their file, without the header line" in done.stdout
    everything = json.loads((files / "j.json").read_text())
    lines = (files / "t.csv").read_text().splitlines()
    assert len(everything["outliers"]) == 5
    for outlier in everything["outliers"]:
        assert int(outlier["id"]) == outlier["test_row"] == outlier["row"] - 50 + 1
        assert f"#{outlier['rank']} row {outlier['id']}: " in done.stdout
        assert f"row {outlier['id']}</a>" in report.read_text()
        for reason in outlier["reasons"]:
            assert float(lines[outlier["test_row"]].split(",")[reason["column"]]) == reason["value"]
    assert "). Rows are numbered from 1" in report.read_text()
    named = detect(files, "--id", "serial", "--report", str(report))
    assert "numbered from 1" not in named.stdout + report.read_text()


def test_ids_are_unique(files):
    lines = (files / "new.csv").read_text().splitlines()
    (files / "twice.csv").write_text("\n".join([*lines, lines[3]]))
    done = detect(files, "--id", "serial", test="twice.csv")
    assert done.exit_code == 1
    assert "line 26, column 'serial': the id 'S2' is that of line 4 already" in done.output


def test_few_inliers_and_far_rows_are_noted(files):
    lines = (files / "good.csv").read_text().splitlines()
    (files / "few.csv").write_text("\n".join(lines[:8]))
    note = "only 7 inlier(s): scaling, scores and the 5 % to 95 % range of each feature rest on few rows; 20 or more"
    assert note in detect(files, "--id", "serial", inliers="few.csv").stderr
    (files / "enough.csv").write_text("\n".join(lines[:21]))
    assert "inlier(s)" not in detect(files, "--id", "serial", inliers="enough.csv").stderr
    (files / "far.csv").write_text((files / "new.csv").read_text() + "FAR,1e5,1e5,1e5,1e5\n")
    far = detect(files, "--id", "serial", test="far.csv").stderr
    assert "1 row(s) lie so far away" in far
    assert "(FAR of the test rows)" in far
    assert far.count("underflow") == 1


def test_base_and_contributions_add_up_to_the_score(files):
    done = detect(files, "--id", "serial", "--contamination", "0.17", "--top", "50")
    base = float(re.search(r"base: log\(n/n'\) = log\(24/50\) = (\S+);", done.stdout)[1])
    blocks = done.stdout.split("\n#")[1:]
    assert len(blocks) == 4
    for block in blocks:
        score = float(re.search(r"log r = (\S+) ", block)[1])
        parts = [float(part) for part in re.findall(r"contributes (\S+)", block)]
        assert parts
        assert base + sum(parts) == pytest.approx(score, abs=0.02)  # printed with three digits


@pytest.mark.parametrize(
    ("reach", "shown"),
    [
        ((2.1e-5, 1e-6), "± 3e-05"),
        ((0.0, 0.0), "± 0"),
        ((0.5, 0.001), "-2.5 to -1.999"),
        ((np.inf, 0.0), "-inf to -2"),
    ],
)
def test_narrow_intervals_are_shown_by_their_reach(reach, shown):
    interval = (-2.0 - reach[0], -2.0 + reach[1])
    assert _interval(Explanation(1, 0, -2.0, np.exp(-2.0), interval, True, (), None, 0, 1, ())) == shown
