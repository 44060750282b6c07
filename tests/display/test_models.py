"""Displays of models and of comparisons."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.legend import Legend
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from sklpf import (
    BernoulliRBM,
    LatentDirichletAllocation,
    PartitionResult,
    compare,
    compare_evidence,
    compare_fits,
)
from sklpf.datasets import make_bars_corpus
from sklpf.display import (
    ComparisonDisplay,
    ComponentsDisplay,
    RunDisplay,
    TopicsDisplay,
    TrainingDisplay,
)
from sklpf.partition import Alarm
from sklpf.scoring import ScoreInterval


# ---- comparisons
def interval(mean, rows=1.0, log_z=0.5, converged=True):
    both = np.hypot(rows, log_z)
    parts = [(mean - half, mean + half) for half in (rows, log_z, both)]
    return ScoreInterval(mean, *parts, 0.95, converged)


def drawn(axes):
    """Ends of the bars by line and label, and the points that are drawn."""
    places = ((round(line.get_ydata()[0]), line.get_label()) for line in axes.lines)
    bars = {place: tuple(line.get_xdata()) for place, line in zip(places, axes.lines)}
    return {key: ends for key, ends in bars.items() if key[1].startswith(("all", "rows", "log Z"))}


def test_models_are_drawn_with_both_errors_and_beside_it_their_differences(rbm):
    X = np.random.default_rng(1).integers(2, size=(20, 9))
    other = BernoulliRBM.from_parameters(np.zeros((1, 9)), np.zeros(9), np.zeros(1))
    comparison = compare({"one": rbm, "other": other}, X=X)
    display = ComparisonDisplay.from_result(comparison)
    names = list(comparison.scores)
    _, pair = plt.subplots(1, 2)  # which share no axis
    for axes in (display.ax_, *ComparisonDisplay.from_result(comparison, ax=pair).axes_):
        assert [label.get_text() for label in axes.get_yticklabels()] == names
        assert axes.yaxis_inverted()
    bars = drawn(display.axes_[0])
    for i, name in enumerate(names):
        score = comparison.scores[name]
        assert bars[i, "all errors, 95 %"] == score.combined
        assert bars[i, "rows"] == score.sampling
        assert bars[i, "log Z"] == score.partition
    assert (
        drawn(display.axes_[1])[1, "all errors, 95 %"] == comparison.differences[names[1]].combined
    )
    assert len(drawn(display.axes_[1])) == 3  # the best one has no difference from itself
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert display.ax_.get_xlabel() == "log-likelihood\nper row of these fits (nats)"
    assert legend == ["all errors, 95 %", "rows", "log Z"]
    difference = compare(other, rbm, X)
    alone = ComparisonDisplay.from_result(difference, name="other - one")
    assert drawn(alone.ax_)[0, "rows"] == difference.sampling
    assert alone.ax_.get_xlabel() == "difference of these fits\n(nats)"
    alone = ComparisonDisplay.from_result(rbm.score_interval(X))
    assert alone.ax_.get_xlabel() == "log-likelihood\nper row of these fits (nats)"


def test_what_is_not_trusted_is_hollow_and_what_is_not_finite_is_written():
    bad = interval(-2.0, converged=False)
    scores = {"good": interval(-1.0), "bad": bad, "none": interval(-np.inf)}
    display = ComparisonDisplay.from_result(scores)
    points = [line for line in display.ax_.lines if line.get_marker() == "o"]
    assert [point.get_markerfacecolor() for point in points] == ["k", "none"]
    assert [text.get_text().strip() for text in display.ax_.texts] == ["-inf"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize("result", [{}, {"a": 1.0}, 3.0, {"a": PartitionResult("HAIS", 1.0, 0.1)}])
def test_other_results_are_refused(result):
    with pytest.raises(TypeError, match="result must be what compare"):
        ComparisonDisplay.from_result(result)
    with pytest.raises(ValueError, match="scores or differences must hold the interval"):
        ComparisonDisplay().plot()


def test_procedures_are_drawn_with_every_fit():
    comparison = procedures()
    display = ComparisonDisplay.from_result(comparison)
    names = list(comparison.scores)
    labels = [label.get_text().removesuffix(" (chosen)") for label in display.ax_.get_yticklabels()]
    assert labels == names
    left, right = display.axes_
    dots = [line for line in left.lines if line.get_label() == "one fit"]
    for line, name in zip(dots, names, strict=True):
        assert_array_equal(line.get_xdata(), comparison.means[name].ravel())
    dots = [line for line in right.lines if line.get_label() == "one fit"]
    assert len(dots) == 1
    expected = comparison.means[names[1]] - comparison.means[names[0]]
    assert_array_equal(dots[0].get_xdata(), expected.ravel())
    ends = [tuple(line.get_xdata()) for line in right.lines if line.get_label() == "fits"]
    assert ends == [comparison.differences[names[1]].fits]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["one fit", "all errors, 95 %", "rows", "fits", "log Z"]
    assert display.ax_.get_xlabel() == "expected log-likelihood\nper row (nats)"


def test_evidences_and_probabilities_have_a_panel_each():
    doubted = PartitionResult("HAIS", -106.0, 0.3, alarms=(Alarm("kind", "seen"),))
    comparison = compare_evidence({"line": PartitionResult("HAIS", -104.2, 0.05), "sine": doubted})
    display = ComparisonDisplay.from_result(comparison)
    left, right = display.axes_
    assert [label.get_text() for label in left.get_yticklabels()] == ["line", "sine"]
    bars = [line.get_xdata() for line in right.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(bars[1], comparison.models["sine"].probability_interval)
    points = [line for line in left.lines if len(line.get_xdata()) == 1]
    assert [line.get_markerfacecolor() for line in points] == ["k", "none"]
    far = {f"{i}": PartitionResult("HAIS", -x, 0.01) for i, x in enumerate((0, 1, 100))}
    apart = ComparisonDisplay.from_result(compare_evidence(far)).axes_[0]
    assert [text.get_ha() for text in apart.texts] == ["right", "left"]
    again = display.plot(display.axes_)
    assert again.figure_ is display.figure_


# ---- components
def test_components_are_images_side_by_side(rbm):
    display = ComponentsDisplay.from_estimator(rbm, n_columns=3)
    assert_array_equal(display.images, rbm.components_.reshape(4, 3, 3))
    mosaic, side = display.ax_.images[0].get_array(), 18  # 3 pixels, each six times, and a gap of 1
    assert_array_equal(mosaic[:side:6, 19 : 19 + side : 6], rbm.components_[1].reshape(3, 3))
    assert_array_equal(mosaic[19 : 19 + side : 6, :side:6], rbm.components_[3].reshape(3, 3))
    assert mosaic.mask[18].all()
    assert mosaic.mask[19:, 19:].all()  # two empty places
    assert mosaic.shape == (37, 56)
    largest = np.abs(rbm.components_).max()
    assert display.ax_.images[0].get_clim() == (-largest, largest)


def test_models_without_components_are_refused():
    with pytest.raises(ValueError, match="components_ of shape .* a FunctionTransformer has none"):
        ComponentsDisplay.from_estimator(FunctionTransformer().fit([[0.0]]))
    with pytest.raises(NotFittedError):
        ComponentsDisplay.from_estimator(BernoulliRBM())


# ---- topics
@pytest.fixture(scope="module")
def lda():
    counts, _, _ = make_bars_corpus(60, size=3, n_tokens=20, random_state=0)
    return LatentDirichletAllocation(6, max_iter=2, random_state=0).fit(counts)


def test_topics_are_bars_of_their_most_probable_words(lda):
    words = [f"word {i}" for i in range(9)]
    display = TopicsDisplay.from_estimator(lda, words, n_words=4)
    p = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    for k, axes in enumerate(display.axes_[:6]):
        best = np.argsort(-p[k], kind="stable")[:4]
        assert [text.get_text() for text in axes.texts] == [words[i] for i in best]
        assert_allclose([bar.get_width() for bar in axes.patches], p[k, best])
        assert axes.get_title() == f"topic {k}"
    assert len(display.axes_) == 6  # two rows of three


def test_long_words_end_with_their_panel_and_dollars_are_no_formulas(lda):
    display = TopicsDisplay.from_estimator(lda, [f"${'w' * 80} {i}$^" for i in range(9)])
    display.figure_.canvas.draw()
    for axes in display.axes_[:6]:
        outer = axes.get_tightbbox().padded(1)
        assert all(text.get_clip_box().x1 <= outer.x1 for text in axes.texts)
        assert outer.width < display.figure_.bbox.width / 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a", "b"]}, "feature_names must be 9 words, one for each feature"),
        ({"n_words": 0}, "n_words must be an integer of at least 1, got 0"),
        ({"topics": [1.0, 2.0]}, "topics must be numbers of topics from 0 to 5"),
        ({"topics": [6]}, r"topics must be numbers of topics from 0 to 5, got \[6\]"),
        ({"order": "best"}, 'order must be "probability" or "lift", got \'best\''),
    ],
)
def test_what_does_not_fit_the_topics_is_refused(lda, options, message):
    with pytest.raises(ValueError, match=message):
        TopicsDisplay.from_estimator(lda, **options)
    assert not plt.get_fignums()


# ---- training
def test_an_rbm_shows_validation_scores_and_the_tracked_log_partition():
    X = np.random.default_rng(0).integers(2, size=(100, 6))
    rbm = BernoulliRBM(3, n_iter=4, early_stopping=True, random_state=0).fit(X)
    display = TrainingDisplay.from_estimator(rbm)
    scores, log_z = display.axes_
    assert_array_equal(scores.lines[0].get_ydata(), rbm.validation_scores_)
    assert_array_equal(log_z.lines[0].get_ydata(), rbm.log_partition_curve_)
    assert scores.lines[1].get_xdata()[0] == rbm.best_iteration_
    top = scores.collections[0].get_paths()[0].vertices[:, 1].max()
    ends = rbm.validation_scores_ + 1.959964 * rbm.validation_score_std_errors_
    assert top == pytest.approx(ends.max())
    tracked = BernoulliRBM(3, n_iter=2, track_log_partition="rts", random_state=0).fit(X)
    display = TrainingDisplay.from_estimator(tracked)
    assert len(display.axes_) == 1
    assert not display.ax_.collections  # of "rts" there is no error


# ---- in a grid
@functools.cache
def procedures():
    X = np.random.default_rng(0).integers(2, size=(40, 4))
    candidates = {f"{n} units": BernoulliRBM(n, n_iter=2) for n in (1, 2)}
    return compare_fits(candidates, X, cv=3, n_seeds=2, random_state=0)


NARROW = {
    "tempering": (6, lambda tempering, ax: RunDisplay.from_estimator(tempering, ax=ax)),
    "procedures": (2, lambda tempering, ax: ComparisonDisplay.from_result(procedures(), ax=ax)),
    "evidence": (
        2,
        lambda tempering, ax: ComparisonDisplay.from_result(
            compare_evidence({"no relation": tempering, "hierarchical model": tempering}), ax=ax
        ),
    ),
}


@pytest.mark.parametrize("kind", NARROW)
def test_a_column_of_a_paper_holds_every_label(kind, tempering):
    n_panels, draw = NARROW[kind]
    figure, ax = plt.subplots(figsize=(3.3, 1 + 1.4 * n_panels), layout="constrained")
    display = draw(tempering, ax)
    figure.canvas.draw()
    boxes = [figure.get_tightbbox().transformed(figure.dpi_scale_trans)]
    boxes += [legend.get_window_extent() for legend in figure.findobj(Legend)]
    for box in boxes:
        assert figure.bbox.x0 - 1 < box.x0 < box.x1 < figure.bbox.x1 + 1
    for panel in display.axes_:
        low, high = panel.get_xlim()
        labels = [
            label.get_window_extent()
            for place, label in zip(panel.get_xticks(), panel.get_xticklabels())
            if low <= place <= high and label.get_text()
        ]
        for one, other in zip(labels, labels[1:]):
            assert one.x1 < other.x0
