"""What many machines say of one number: a random-effects model, and where the next machine is expected.

Machines differ, and each is measured with an error of its own. The model takes the logarithm of a ratio on each
machine as drawn around a mean. The variance between machines is Paule and Mandel's, and the interval of the mean that
of Hartung, Knapp, Sidik and Jonkman, both by statsmodels (`combine_effects`). The prediction interval is about the
ratio that the next machine will measure: that of Higgins, Thompson and Spiegelhalter (2009), with k - 2 degrees of
freedom, and with the error of one more measurement. Without that it holds too seldom where machines differ by less than
they were measured to, since then their variance is often estimated as none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ffilab.judge.estimates import LEVEL, PREDICTION_LEVEL, Interval

NAME = (
    "random effects: Paule and Mandel's variance, Hartung and Knapp's interval, Higgins' prediction interval with the "
    "error of one more measurement; no machine counts as measured better than half of them"
)
# Two machines say nothing of a third one: the prediction interval has no degree of freedom.
FEWEST = 3
# What is further from 1 is the ratio of no two things that can be compared; and no error is smaller than this.
MOST, LEAST_ERROR = 1e6, 1e-6


@dataclass(frozen=True)
class Combined:
    """machines: how many it comes from. mean: over machines, at the book's level. next_machine: where the ratio lies
    that another machine will measure as well as most of these, at PREDICTION_LEVEL. between: standard deviation of the
    logarithm from machine to machine."""

    machines: int
    mean: Interval
    next_machine: Interval
    between: float


def has_bounds(interval: Interval) -> bool:
    """Can it enter the model? It is a ratio inside an interval that has a width."""
    ends = [interval.low, interval.value, interval.high]
    return ends == sorted(ends) and min(ends) > 1 / MOST and max(ends) < MOST and interval.half_width > 0


def combined(intervals: Sequence[Interval], errors: Sequence[float | None]) -> Combined | None:
    """Combine the ratios of machines, each with its interval at the book's level and the standard error of its
    logarithm. None below FEWEST of them.

    Without an error half the width of the interval over the normal quantile stands for it, which of few layouts is too
    much.
    """
    from statsmodels.stats.meta_analysis import combine_effects  # pyright: ignore[reportMissingImports]: see `environments.install_extra`

    if len(intervals) < FEWEST:
        return None
    quantile = 2 * float(stats.norm.ppf(0.5 + LEVEL / 2))
    stated = [error or math.log(one.reach) / quantile for one, error in zip(intervals, errors)]
    # Where machines seem alike the most exact one would speak for all.
    known = np.maximum(stated, max(LEAST_ERROR, float(np.median(stated))))
    logs = np.log([one.value for one in intervals])
    with np.errstate(divide="ignore"):
        found = vars(combine_effects(logs, known**2, method_re="iterated", use_t=True))
    k, mean, between = len(intervals), float(found["mean_effect_re"]), math.sqrt(max(found["tau2"], 0.0))

    def around(level: float, freedom: int, error: float) -> Interval:
        reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
        return Interval(mean, mean - reach, mean + reach).map(math.exp)

    of_one = float(np.median(known))
    # Hartung and Knapp's error is too small by luck where few machines agree better than their errors let expect.
    of_mean = max(math.sqrt(found["var_hksj_re"]), float(found["sd_eff_w_re"]))
    return Combined(
        k,
        around(LEVEL, k - 1, of_mean),
        around(PREDICTION_LEVEL, k - 2, math.hypot(between, of_mean, of_one)),
        between,
    )
