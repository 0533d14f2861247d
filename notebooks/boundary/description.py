"""The talk's statistics tables (A5), as description: they describe samples and decide nothing."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats


def tukey(values: np.ndarray) -> np.ndarray:
    """The values within 1.5 interquartile ranges of the quartiles, as the talk filtered its samples; all, if the
    quartiles are equal."""
    low, high = np.percentile(values, [25, 75])
    if low == high:
        return values
    slack = 1.5 * (high - low)
    return values[(values >= low - slack) & (values <= high + slack)]


def moments(samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """Per sample: n, mean, median, std, cv, skewness, excess kurtosis and MAD (scaled to sigma), in the samples' unit.
    As the talk has them: over powers of a standard deviation with ddof = 1."""
    asked = {
        "n": len,
        "mean": np.mean,
        "median": np.median,
        "std": lambda values: np.std(values, ddof=1),
        "cv": lambda values: stats.variation(values, ddof=1),
        "skewness": lambda values: skewness_and_kurtosis(values)[0],
        "kurtosis": lambda values: skewness_and_kurtosis(values)[1],
        "MAD": lambda values: stats.median_abs_deviation(values, scale="normal"),
    }
    return pd.DataFrame(
        [{"sample": name} | {what: of(values) for what, of in asked.items()} for name, values in samples.items()]
    )


def skewness_and_kurtosis(values: np.ndarray) -> tuple[float, float]:
    """Both NaN for values that are all alike."""
    if not np.ptp(values):
        return math.nan, math.nan
    away = (values - np.mean(values)) / np.std(values, ddof=1)
    return float(np.mean(away**3)), float(np.mean(away**4)) - 3


def pairs(samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """Every pair of samples: Mann-Whitney U p, Benjamini-Hochberg p, the faster one by medians, Cliff's delta, shift.

    shift: Hodges-Lehmann difference (median of all pairwise differences) relative to the second's median.
    """
    rows = []
    for one, other in combinations(samples, 2):
        a, b = samples[one], samples[other]
        ranked = stats.mannwhitneyu(a, b)
        # P(one > other) - P(one < other), from -1 to 1 (Cliff 1993, DOI 10.1037/0033-2909.114.3.494).
        delta = float(2 * ranked.statistic / (len(a) * len(b)) - 1)
        # Where all values are equal, as with a coarse clock, there is no rank to go by, and scipy says NaN.
        p = float(ranked.pvalue) if np.ptp([*a, *b]) else 1.0
        rows.append(
            {
                "pair": f"{one} vs {other}",
                "U p": p,
                "faster": "neither" if np.median(a) == np.median(b) else other if np.median(a) > np.median(b) else one,
                "Cliff's delta": delta,
                "shift": float(np.median(np.subtract.outer(a, b)) / np.median(b)),
            }
        )
    frame = pd.DataFrame(rows)
    frame.insert(2, "BH p", stats.false_discovery_control(frame["U p"]) if rows else [])
    return frame
