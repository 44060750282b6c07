"""compare_fits: procedures compared by many fits of each."""

import warnings

import numpy as np
import pytest
from interruption import saves
from scipy.stats import binom
from scipy.stats import t as student_t
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
)
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklpf import (
    AIS,
    BernoulliRBM,
    GaussianRBM,
    LatentDirichletAllocation,
    ParallelTempering,
    compare_fits,
)
from sklpf.comparing import FitComparison, FitInterval

WEIGHTS = 2 * np.random.default_rng(0).normal(size=(2, 6))
TRUE = BernoulliRBM.from_parameters(WEIGHTS, np.zeros(6), np.zeros(2))
X = TRUE.sample(60, random_state=0)


def rbm(n_components=2, **options):
    """An RBM that begins far from the data, so that passes make a difference."""
    given = {"learning_rate": 0.1, "n_iter": 3, "intercept_init": "zeros"} | options
    return BernoulliRBM(n_components, **given)


def two(**options):
    return {"1 unit": rbm(1, **options), "3 units": rbm(3, **options)}


def half(ends):
    return (ends[1] - ends[0]) / 2


def equal(a, b):
    assert a.scores == b.scores
    assert a.differences == b.differences
    for name in a.names:
        np.testing.assert_array_equal(a.means[name], b.means[name])


# ---- what is estimated
class Listening(BernoulliRBM):
    """Notes the seeds that its fits are given."""

    seeds = []

    def fit(self, X, y=None):
        self.seeds.append(self.random_state)
        return super().fit(X)


def test_candidates_have_the_same_splits_and_seeds():
    Listening.seeds.clear()
    model = Listening(2, n_iter=1, partition_estimator=AIS(20, 20, random_state=3))
    pipeline = make_pipeline(FunctionTransformer(), model)
    found = compare_fits({"alone": model, "piped": pipeline}, X, cv=2, n_seeds=2, random_state=0)
    assert isinstance(found, FitComparison)
    assert found.names == ("alone", "piped")
    np.testing.assert_array_equal(found.means["alone"], found.means["piped"])
    assert found.means["alone"].shape == (2, 2)
    assert len(set(Listening.seeds)) == 4  # one for each split and seed
    assert all(Listening.seeds.count(seed) == 2 for seed in Listening.seeds)
    assert found.difference("alone", "piped").mean == 0
    assert model.random_state is None
    assert not hasattr(model, "components_")


def test_means_are_those_of_the_held_out_rows():
    folds = list(KFold(3).split(X))
    Listening.seeds.clear()
    found = compare_fits({"a": Listening(2, n_iter=1), "b": rbm(1)}, X, cv=folds, random_state=0)
    for split, (train, test) in enumerate(folds):
        model = BernoulliRBM(2, n_iter=1, random_state=Listening.seeds[split]).fit(X[train])
        assert found.means["a"][split, 0] == pytest.approx(model.score(X[test]), abs=1e-12)
    difference = found.difference("a", "b")
    assert isinstance(difference, FitInterval)
    assert difference.mean == pytest.approx((found.means["a"] - found.means["b"]).mean())
    assert difference.n_fits == 3
    masks = [tuple(np.isin(np.arange(60), rows) for rows in fold) for fold in folds]
    same = {"a": Listening(2, n_iter=1), "b": rbm(1)}
    equal(found, compare_fits(same, X, cv=masks, random_state=0))


def test_the_interval_is_the_wider_of_two_and_its_parts_add_up():
    found = compare_fits(two(learning_rate=0.5), X, random_state=2, n_seeds=2)
    difference = found.difference("3 units", "1 unit")
    splits = (found.means["3 units"] - found.means["1 unit"]).mean(axis=1)
    corrected = splits.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4)
    assert half(difference.combined) >= student_t.isf(0.025, 4) * corrected * (1 - 1e-12)
    assert difference.std_error >= corrected * (1 - 1e-12)
    parts = [half(getattr(difference, part)) for part in ("sampling", "fits", "partition")]
    assert np.linalg.norm(parts) == pytest.approx(half(difference.combined))
    assert min(parts[:2]) > 0
    assert parts[2] == 0  # log Z is exact
    narrow = found.difference("3 units", "1 unit", level=0.5)
    assert half(narrow.combined) < 0.5 * half(difference.combined)
    assert found.difference("1 unit", "3 units").mean == -difference.mean


def test_log_z_is_a_part_of_its_own():
    sampled = {"exact": rbm(1), "sampled": rbm(1, partition_estimator=AIS(20, 20))}
    difference = compare_fits(sampled, X, cv=3, random_state=0).difference("exact", "sampled")
    assert half(difference.partition) > 0
    assert abs(difference.mean) < 5 * half(difference.partition)
    rows = pytest.approx((difference.mean, difference.mean), abs=1e-12)
    assert difference.sampling == rows  # they say the same by both


@pytest.mark.parametrize(
    "cv", [ShuffleSplit(4, test_size=0.3, random_state=0), RepeatedKFold(n_splits=3, n_repeats=2)]
)
def test_rows_that_several_splits_hold_out_count_once(cv):
    """Splits that all hold out the same rows hold no more of them than one does."""
    train, test = next(iter(cv.split(X)))
    different = {"none": rbm(1, n_iter=0), "1 unit": rbm(1, n_iter=40)}
    std_errors = []
    for n_splits in (2, 8):
        splits = [(np.delete(train, k), test) for k in range(n_splits)]
        found = compare_fits(different, X, cv=splits, random_state=0)
        difference = found.difference("none", "1 unit")
        share = half(difference.sampling) / half(difference.combined)
        std_errors.append(share * difference.std_error)
    assert std_errors[1] == pytest.approx(std_errors[0], rel=0.1)
    assert compare_fits(two(), X, cv=cv, random_state=0).converged


def test_rows_of_a_group_count_as_one():
    """Ten copies of every row say no more than the row itself does."""
    groups = np.arange(60)
    found = {}
    for n_copies in (1, 10):
        candidates = {"none": rbm(1, n_iter=0), "again": rbm(3, n_iter=0)}
        options = {"groups": np.repeat(groups, n_copies), "cv": GroupKFold(3), "random_state": 0}
        compared = compare_fits(candidates, np.repeat(X, n_copies, axis=0), **options)
        found[n_copies] = compared.difference("none", "again")
    assert found[10].mean == pytest.approx(found[1].mean, rel=0.1)
    assert half(found[10].sampling) == pytest.approx(half(found[1].sampling), rel=0.1)


def test_the_interval_covers():
    """The expected difference at the folds' training size lies in 95 % of the intervals."""
    procedures = {name: rbm(n, learning_rate=0.3, n_jobs=1) for name, n in (("a", 1), ("b", 3))}
    independent = TRUE.sample(20 * 100, random_state=2).reshape(20, 100, 6)
    fresh = [(np.arange(30), np.arange(30 + k, 100)) for k in range(2)]
    truths = [
        compare_fits(procedures, rows, cv=fresh, random_state=i).difference("a", "b").mean
        for i, rows in enumerate(independent)
    ]
    truth, inside = np.mean(truths), 0
    for i, rows in enumerate(TRUE.sample(20 * 40, random_state=1).reshape(20, 40, 6)):
        found = compare_fits(procedures, rows, cv=4, random_state=i)
        low, high = found.difference("a", "b").combined
        inside += low <= truth <= high
    # Binomial(20, 0.95): a false alarm is 1e-4 at most (but for the error of the truth)
    assert inside >= binom.ppf(1e-4, 20, 0.95)


# ---- the best and the chosen one
def test_the_first_that_is_not_worse_is_chosen():
    found = compare_fits({"none": rbm(1, n_iter=0), **two(n_iter=40)}, X, random_state=0)
    assert found.best in ("1 unit", "3 units")
    assert found.differences["none"].mean < -found.differences["none"].std_error
    apart = found.difference("1 unit", found.best)
    expected = "1 unit" if -apart.mean <= apart.std_error else "3 units"
    assert found.chosen == expected
    same = compare_fits({"first": rbm(), "second": rbm()}, X, cv=2, random_state=0)
    assert same.chosen == "first"


def test_table_summary_and_frame():
    found = compare_fits(two(), X, cv=3, random_state=0)
    header, *lines = repr(found).splitlines()
    assert header.split("  ")[0] == "procedure"
    *lines, baseline = lines
    assert [line.split("  ")[0] for line in lines] == list(found.scores)
    assert baseline.split("  ")[0] == "(independent columns)"
    assert sum(line.endswith("chosen") for line in lines) == 1
    title = found.summary().splitlines()[0]
    assert title.endswith("(nats): 3 splits, 1 training seed each, 40 training rows")
    assert "<table>" in found._repr_html_()
    frame = found.to_frame()
    assert list(frame.index) == list(found.scores)
    second = list(found.scores)[1]
    assert frame.loc[second, "difference"] == found.differences[second].mean
    assert frame["difference_std_error"].iloc[0] == 0
    difference = found.differences[second]
    assert "expected from 3 fits" in repr(difference)
    assert "from the fits" in difference.summary()


# ---- fits that fail
class Failing(BernoulliRBM):
    """Raises for some seeds."""

    def fit(self, X, y=None):
        if self.random_state % 8 < self.batch_size - 10:
            raise ValueError("training diverged: lower learning_rate")
        return super().fit(X)


def failing(n_of_8, **options):
    return Failing(2, n_iter=1, batch_size=10 + n_of_8, **options)


def test_a_fit_that_fails_leaves_out_its_pair():
    found = compare_fits({"good": rbm(), "failing": failing(1)}, X, cv=4, n_seeds=5, random_state=0)
    n_missing = int(np.isnan(found.means["failing"]).sum())
    assert 0 < n_missing <= 5
    assert len(found.missing) == n_missing
    split, seed = np.argwhere(np.isnan(found.means["failing"]))[0]
    reason = "training diverged: lower learning_rate"
    assert found.missing[0] == f"failing, split {split}, seed {seed}: {reason}"
    line = f"{n_missing} of 40 fits are missing: {found.missing[0]}"
    assert line in str(found)
    assert line in found.summary()
    difference = found.difference("good", "failing")
    assert difference.converged
    assert difference.n_fits == 20 - n_missing
    assert found.scores["good"].n_fits == 20 - n_missing  # scores are over the same fits
    there = np.isfinite(found.means["failing"])
    rows = found.means["good"]
    by_split = [fits[kept].mean() for fits, kept in zip(rows, there)]
    assert found.scores["good"].mean == pytest.approx(np.mean(by_split))
    means = [found.scores[name].mean for name in ("good", "failing")]
    assert difference.mean == pytest.approx(means[0] - means[1])
    assert found.converged


def test_too_few_fits_are_not_converged():
    found = compare_fits({"good": rbm(), "failing": failing(7)}, X, cv=4, n_seeds=2, random_state=0)
    assert not found.converged
    assert "of 8 fits are left" in found.reasons[0]
    assert found.best == found.chosen == "good"
    assert not found.to_frame().loc["failing", "converged"]
    assert np.isnan(found.scores["failing"].mean)  # not over the fits that the other's is over
    assert found.scores["good"].n_fits == 8
    none = compare_fits({"good": rbm(), "failing": failing(8)}, X, cv=4, random_state=0)
    assert np.isnan(none.difference("good", "failing").mean)
    assert "0 of 4 fits are left, in fewer than 2 splits" in str(none)
    with pytest.raises(ValueError, match="no fit of any .*; a, split 0, seed 0: training diverged"):
        compare_fits({"a": failing(8), "b": failing(8)}, X, cv=2, random_state=0)


def test_scores_that_are_not_trusted_are_missing():
    untrusted = rbm(3, partition_estimator=ParallelTempering(n_sweeps=64, tol=1e-9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare_fits({"good": rbm(), "untrusted": untrusted}, X, cv=2, random_state=0)
    assert len(found.missing) == 2
    assert "log Z is not to be trusted" in found.missing[0]
    assert found.best == "good"


# ---- running
def test_an_interrupted_comparison_goes_on(tmp_path):
    whole = compare_fits(two(), X, cv=3, random_state=0)
    options = {"cv": 3, "random_state": 0, "checkpoint": tmp_path, "n_jobs": 2}
    with saves(interrupt_at=4):
        compare_fits(two(), X, **options)
    assert len(list(tmp_path.iterdir())) == 4
    with saves() as saved:
        other = compare_fits(two(), 1 - X, **options)
    assert len(saved) == 6  # of other rows nothing is there
    assert other.means["1 unit"][0, 0] != whole.means["1 unit"][0, 0]
    with saves() as saved:
        resumed = compare_fits(two(verbose=0), X, **options)
    assert len(saved) == 2
    equal(resumed, whole)
    assert list(tmp_path.iterdir()) == []


# ---- pipelines and rows
def test_densities_of_scikit_learn_are_candidates():
    """Each fit's mean is that of scikit-learn's own `score` on the rows that its split left out."""
    rows = np.random.default_rng(0).normal(size=(80, 2)) @ np.array([[1.0, 0.5], [0.0, 0.3]])
    splits = list(KFold(4).split(rows))
    candidates = {
        "one": GaussianMixture(1),
        "scaled": make_pipeline(StandardScaler(with_std=False, with_mean=False), KernelDensity()),
        "units": GaussianRBM(1, n_iter=2),
    }
    found = compare_fits(candidates, rows, cv=splits, random_state=0)
    for (train, test), means in zip(splits, found.means["one"]):
        assert means[0] == pytest.approx(GaussianMixture(1).fit(rows[train]).score(rows[test]))
    assert found.best == found.chosen == "one"
    assert str(found).endswith("one is the first candidate: those before it were not tried")


def test_documents_are_compared_per_word():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.choice([0.2, 3.0], size=(60, 6)))
    counts[:, 0] += 1
    one, two = (LatentDirichletAllocation(k, max_iter=2) for k in (1, 2))
    found = compare_fits({"1": one, "2": two}, counts, cv=3, per="word", random_state=0)
    documents = compare_fits({"1": one, "2": two}, counts, cv=3, random_state=0)
    splits = KFold(3, shuffle=True, random_state=0).split(counts)
    lengths = [counts[test].sum() / len(test) for _, test in splits]
    np.testing.assert_allclose(found.means["1"][:, 0] * lengths, documents.means["1"][:, 0])
    assert "per word" in found.summary()
    assert "40 training documents" in found.summary()
    assert "from the documents" in found.scores["1"].summary()  # words come in these
    assert found.scores["1"].baseline.name == "one topic"


# ---- bad input
HALVES = (np.arange(30), np.arange(30, 60))
SEARCH = GridSearchCV(rbm(intercept_init="log-odds"), {"n_components": [1, 2]}, cv=2).fit(X)
NAN = np.where(np.arange(360).reshape(60, 6) == 7, np.nan, X)


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ([rbm(), rbm()], {}, "candidates must be a dict of estimators by name, got list"),
        ({"one": rbm()}, {}, "candidates must hold at least 2 procedures to be compared, got 1"),
        ({"one": rbm(), 1: rbm(), "1": rbm()}, {}, "candidates must have different names"),
        ({"one": rbm(), "two": 2}, {}, "candidates must be models of sklpf.*'two' is a int"),
        ({"one": rbm(), "two": GaussianRBM}, {}, "is the class GaussianRBM: write GaussianRBM"),
        ({"one": rbm(), "two": make_pipeline(rbm(), PCA())}, {}, "'two' is a PCA"),
        (two(), {"X": None}, "X must be given"),
        (two(), {"X": np.where(X == 1, np.inf, X)}, "no fit of any .* Input X contains infinity"),
        (
            {"one": GaussianMixture(), "two": GaussianMixture(2)},
            {"X": NAN},
            "no fit of any candidate can be scored; one, split 0, seed 0: Input X contains NaN",
        ),
        (two(), {"cv": 1}, "cv must be at least 2 folds, got 1"),
        (two(), {"cv": ShuffleSplit(1)}, "cv must give at least 2 splits, got 1"),
        (two(), {"cv": LeaveOneOut()}, "at least 2 rows in every split, got 1: take fewer folds"),
        (two(), {"cv": [(np.arange(60),) * 2] * 2}, "split 0 has 60 rows in both parts"),
        (two(), {"cv": [HALVES] * 2}, "cv must give different splits, and split 1 is split 0"),
        (two(), {"cv": [(HALVES[0] / 1, HALVES[1])] * 2}, "rows must be given by integers"),
        (two(), {"cv": [(HALVES[0], [30, 31, 31])] * 2}, "split 0 holds one out twice"),
        (two(), {"groups": np.arange(60) // 30}, "at least 2 groups in every split, got 1"),
        ({"one": rbm(), "two": GaussianRBM()}, {}, "one has probabilities of rows and two has"),
        (two(), {"n_seeds": 0}, "n_seeds must be an integer of at least 1, got 0"),
        (two(), {"per": "word"}, "per must be None, as 1 unit is a BernoulliRBM"),
        (two(), {"level": 95}, "level must lie strictly between 0 and 1, got 95"),
        (two(), {"checkpoint": "here"}, "checkpoint needs random_state to be an int"),
        (SEARCH, {}, r"and not a finished search: fit its short list again, each as clone"),
    ],
)
def test_bad_input(candidates, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare_fits(candidates, **{"X": X, "cv": 2} | options)
