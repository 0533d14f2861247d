"""How much each level of a nested design adds to the scatter: variance components by the method of moments."""

import math

from scipy import stats

from ffilab.judge.estimates import Interval

# Of the intervals here; no verdict rests on them.
TAILS = (0.975, 0.025)


def alone(square: float, freedom: int) -> Interval:
    """Standard deviation of the lowest level, from its mean square and degrees of freedom, with the exact interval."""
    bounds = [square * freedom / float(stats.chi2.ppf(tail, freedom)) for tail in TAILS]
    return Interval(square, *bounds).map(math.sqrt)


def between(upper: tuple[float, int], lower: tuple[float, int], times: int) -> Interval:
    """Standard deviation that a level adds: from its mean square and that of the level below (each with its degrees of
    freedom), whose difference is `times` its variance.

    The interval is that of Ting et al. 1990 (J. Statist. Comput. Simul. 35, 135-143); its bounds are 0 where the
    difference may be negative.
    """
    (one, n), (other, m), bounds = upper, lower, []
    for tail, sign in zip(TAILS, (-1, 1)):
        own, against = 1 - n / float(stats.chi2.ppf(tail, n)), m / float(stats.chi2.ppf(1 - tail, m)) - 1
        f = float(stats.f.ppf(tail, n, m))
        mixed = ((f - 1) ** 2 - (own * f) ** 2 - against**2) / f
        reach = math.sqrt(max(0.0, (own * one) ** 2 + (against * other) ** 2 + mixed * one * other))
        bounds.append((one - other + sign * reach) / times)
    return Interval((one - other) / times, *bounds).map(lambda variance: math.sqrt(max(0.0, variance)))
