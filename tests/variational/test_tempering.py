"""Schedules and learned temperatures."""

import numpy as np
import pytest
from scipy.special import softmax

from sklpf.variational import (
    Annealed,
    GlobalTempering,
    LocalTempering,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)

TEMPERATURES = np.array([1.0, 1.5, 4.0])
LOG_PARTITION = np.array([0.0, 0.7, 2.1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: temperature_schedule("linear", 0.5, 3), "initial must be a temperature"),
        (lambda: temperature_schedule("linear", 2, -1), "n_sweeps must be an integer"),
        (lambda: temperature_schedule([2, np.inf]), "schedule must be a sequence of finite"),
        (lambda: Annealed([2, 0.9]), "temperatures must be a sequence of finite temperatures"),
        (lambda: temperature_ladder(3.0, 1), "n_temperatures must be an integer of at least 2"),
        (lambda: temperature_ladder(3.0, 5, "even"), "spacing must be"),
        (lambda: temperature_ladder(3.0, [1.0, 1.0, 2.0]), "two temperatures that rise from 1"),
        (lambda: temperature_ladder(3.0, [1.5, 2.0]), "two temperatures that rise from 1"),
        (lambda: temperature_ladder(3.0, [1.0]), "two temperatures that rise from 1"),
        (lambda: GlobalTempering([1, 2], [0.0]), "one finite log C"),
        (lambda: LocalTempering([1, 2], [0.0, np.nan], 3), "one finite log C"),
        (lambda: LocalTempering([1, 2], [0.0, 1.0], 0.5), "n_data must be an integer"),
        (lambda: LocalTempering([1, 2], "x", 3), "log_partition must be real numbers"),
        (lambda: GlobalTempering([1, 2j], [0.0, 1.0]), "temperatures must be real numbers"),
        (lambda: GlobalTempering([1, 2], [0.0, 1.0], None), "n_sweeps must be an integer"),
        (lambda: temperature_posterior(0.0, [1, 2], [0.0]), "each of 2 temperatures"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("value", [-3.0, 0.0, 5.0, -1e6, 1e6])
def test_temper_is_the_best_distribution_over_temperatures(value):
    def part_of_bound(r):
        logs = np.where(r > 0, np.log(np.maximum(r, 1e-300)), 0)
        return r @ (value / TEMPERATURES - LOG_PARTITION - np.log(3) - logs)

    inverse, term = temperature_posterior(value, TEMPERATURES, LOG_PARTITION)
    best = softmax(value / TEMPERATURES - LOG_PARTITION)
    np.testing.assert_allclose(inverse, best @ (1 / TEMPERATURES), rtol=1e-12)
    np.testing.assert_allclose(inverse * value + term, part_of_bound(best), rtol=1e-9, atol=1e-9)
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 50):
        assert part_of_bound(other) <= part_of_bound(best) + 1e-9 * max(1, abs(value))


def test_inverse_temperatures_may_be_even_as_in_the_paper():
    ladder = temperature_ladder(100.0, spacing="inverse")
    np.testing.assert_allclose(1 / ladder[::-1], np.arange(1, 101) / 100)
    np.testing.assert_array_equal(temperature_ladder(7.0, ladder), ladder)


def test_good_fits_cool_and_monotone_tempering_never_heats():
    free = GlobalTempering(TEMPERATURES, LOG_PARTITION)
    held = GlobalTempering(TEMPERATURES, LOG_PARTITION, monotone=True)
    seen = []
    for value in (20.0, -20.0):
        free.advance(value)
        held.advance(value)
        seen.append((free.inverse, held.inverse))
    assert seen[0][0] == seen[0][1] > 0.99
    assert seen[1][0] < 0.3  # a poor fit is hot
    assert seen[1][1] == seen[0][1]
