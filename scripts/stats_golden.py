#!/usr/bin/env python3
"""Writes crates/stats/testdata/golden.json: results of scipy that tests/golden.rs compares ours with.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    venv/bin/python scripts/stats_golden.py > crates/stats/testdata/golden.json

Each case has a `kind`, the inputs, and `expected` numbers under the names that the test uses. scipy has neither
Holm's correction (statsmodels' is used) nor an interval of a ratio, Hedges' g, Cliff's delta and the variance
between groups: these are computed here from their definitions with scipy's functions.
"""

import json
import math
import sys

import numpy
import scipy
import statsmodels
from scipy import stats
from scipy.special import gammaln
from statsmodels.stats.multitest import multipletests

CASES = []
RANDOM = numpy.random.default_rng(20090116)


def case(kind, expected, **inputs):
    numbers = {name: float(value) for name, value in expected.items()}
    CASES.append({"kind": kind, **inputs, "expected": numbers})


def values(array, digits=4):
    return [float(round(value, digits)) for value in array]


def sample(of):
    expected = {
        "mean": numpy.mean(of),
        "sd": numpy.std(of, ddof=1) if len(of) > 1 else 0.0,
        "median": numpy.median(of),
        "min": min(of),
        "max": max(of),
        "quantile_0.05": numpy.quantile(of, 0.05),
        "quantile_0.9": numpy.quantile(of, 0.9),
    }
    if min(of) > 0:
        expected["harmonic_mean"] = stats.hmean(of)
    case("sample", expected, values=of)


def moments(base, other):
    (n1, mean1, sd1), (n2, mean2, sd2) = base, other
    test = stats.ttest_ind_from_stats(mean2, sd2, n2, mean1, sd1, n1, equal_var=False)
    variance1, variance2 = sd1**2 / n1, sd2**2 / n2
    freedom = satterthwaite(variance1, n1, variance2, n2)
    expected = {"difference": mean2 - mean1, "t": test.statistic, "p": test.pvalue, "freedom": freedom}
    for level in (0.95, 0.99):
        half = stats.t.ppf(0.5 + level / 2, freedom) * math.sqrt(variance1 + variance2)
        expected[f"low_{level}"], expected[f"high_{level}"] = mean2 - mean1 - half, mean2 - mean1 + half
    if mean1 > 0 and mean2 > 0:
        variance1, variance2 = variance1 / mean1**2, variance2 / mean2**2
        freedom = satterthwaite(variance1, n1, variance2, n2)
        half = stats.t.ppf(0.975, freedom) * math.sqrt(variance1 + variance2)
        middle = math.log(mean2 / mean1)
        expected["ratio_low"], expected["ratio_high"] = math.exp(middle - half), math.exp(middle + half)
    freedom = n1 + n2 - 2
    pooled = math.sqrt(((n1 - 1) * sd1**2 + (n2 - 1) * sd2**2) / freedom)
    correction = math.exp(gammaln(freedom / 2) - gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    expected["hedges_g"] = correction * (mean2 - mean1) / pooled
    case("moments", expected, base=list(base), other=list(other))


def satterthwaite(variance1, n1, variance2, n2):
    return (variance1 + variance2) ** 2 / (variance1**2 / (n1 - 1) + variance2**2 / (n2 - 1))


def two(base, other):
    """Welch's test from the samples, and the tests of ranks."""
    tied = len(set(base + other)) < len(base + other)
    exact = not tied and max(len(base), len(other)) <= 50
    ranks = stats.mannwhitneyu(base, other, method="exact" if exact else "asymptotic")
    test = stats.ttest_ind(other, base, equal_var=False)
    interval = test.confidence_interval(0.95)
    expected = {
        "t": test.statistic,
        "freedom": test.df,
        "p": test.pvalue,
        "low": interval.low,
        "high": interval.high,
        "u": ranks.statistic,
        "rank_p": ranks.pvalue,
        "exact": exact,
        "cliffs_delta": 1 - 2 * ranks.statistic / (len(base) * len(other)),
    }
    case("two", expected, base=base, other=other)


def pairs(base, other):
    """Student's test of pairs, and the interval of the ratio of the means."""
    test = stats.ttest_rel(other, base)
    expected = {"difference": numpy.mean(other) - numpy.mean(base), "t": test.statistic, "p": test.pvalue}
    expected["freedom"] = test.df
    if numpy.mean(base) > 0 and numpy.mean(other) > 0:
        relative = numpy.array(other) / numpy.mean(other) - numpy.array(base) / numpy.mean(base)
        half = stats.t.ppf(0.975, len(base) - 1) * numpy.std(relative, ddof=1) / math.sqrt(len(base))
        middle = math.log(numpy.mean(other) / numpy.mean(base))
        expected["ratio_low"], expected["ratio_high"] = math.exp(middle - half), math.exp(middle + half)
    case("pairs", expected, base=base, other=other)


def correction(p_values):
    corrected = multipletests(p_values, method="holm")[1]
    case("holm", {str(index): p for index, p in enumerate(corrected)}, p_values=p_values)


def bootstrap(name, sides, statistic, level):
    """The ends that scipy makes of its resamples: the test puts the same resamples in."""
    expected, resampled = {}, None
    for method in ("percentile", "BCa"):
        found = stats.bootstrap(
            sides,
            statistic,
            n_resamples=499,
            confidence_level=level,
            method=method,
            vectorized=False,
            rng=numpy.random.default_rng(7),
        )
        low, high = found.confidence_interval
        expected[f"{method}_low"], expected[f"{method}_high"] = low, high
        resampled = [float(value) for value in found.bootstrap_distribution]
    case("bootstrap", expected, statistic=name, level=level, sides=sides, resampled=resampled)


def placements(groups):
    test = stats.f_oneway(*groups)
    n = sum(len(group) for group in groups)
    mean = sum(sum(group) for group in groups) / n
    between = sum(len(group) * (numpy.mean(group) - mean) ** 2 for group in groups) / (len(groups) - 1)
    within = sum((len(group) - 1) * numpy.var(group, ddof=1) for group in groups if len(group) > 1)
    within /= n - len(groups)
    repeats = (n - sum(len(group) ** 2 for group in groups) / n) / (len(groups) - 1)
    expected = {"f": test.statistic, "p": test.pvalue, "within": within}
    expected["between"] = max(0.0, (between - within) / repeats)
    case("placements", expected, groups=groups)


def main():
    runs = values(RANDOM.normal(10, 1, 12))
    slower = values(RANDOM.normal(11, 2, 9))
    skewed = values(RANDOM.lognormal(0, 1, 15))

    for of in (runs, skewed, [3.5], [2.0, 2.0, 2.0], [-4.0, 0.0, 1e6, 2.5], [1e-80, 3e-80]):
        sample(of)

    moments((10, 13.19, 0.40), (10, 13.78, 0.24))
    moments((10, 78.801, 1.44118), (10, 71.334, 1.16809))
    moments((100, 10.388, 0.5), (50, 242.453, 2.5))
    moments((2, 1.0, 0.1), (3, 1.5, 0.7))
    moments((5, -1.0, 2.0), (7, 1.0, 0.0))
    moments((10, 5.0, 1.0), (10, 5.0 + 1e-9, 1.0))
    moments((20000, 100.0, 15.0), (30000, 100.3, 14.0))

    two(runs, slower)
    two(runs, skewed)
    two([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
    two([1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 4.0, 4.0, 5.0])
    two(values(RANDOM.normal(0, 1, 50), 9), values(RANDOM.normal(0.4, 1, 50), 9))
    two(values(RANDOM.normal(0, 1, 51), 9), values(RANDOM.normal(0.4, 1, 20), 9))
    two(values(RANDOM.poisson(4, 60)), values(RANDOM.poisson(5, 45)))

    correction([0.01, 0.04, 0.03, 0.005])
    correction([0.5])
    correction([0.02, 0.02, 0.6, 0.9, 1.0, 0.0])
    correction(values(RANDOM.uniform(0, 0.1, 20), 6))

    bootstrap("mean", [runs], numpy.mean, 0.95)
    bootstrap("mean", [skewed], numpy.mean, 0.9)
    bootstrap("sd", [skewed], lambda of: numpy.std(of, ddof=1), 0.95)
    bootstrap("ratio", [runs, slower], lambda a, b: numpy.mean(b) / numpy.mean(a), 0.95)

    placements([runs, slower, skewed])
    placements([values(RANDOM.normal(mean, 0.3, 5)) for mean in (9.0, 10.0, 9.5, 11.0)])
    placements([[1.0, 2.0, 3.0], [1.1, 2.1, 2.9], [2.05]])

    pairs([144.15, 159.81, 204.52, 210.11, 220.43], [155.54, 163.86, 308.88, 414.77, 505.73])
    pairs(runs[:5], [value * 1.02 + 0.001 * index for index, value in enumerate(runs[:5])])
    pairs([-1.0, 0.5], [2.0, 1.5])

    versions = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "numpy": numpy.__version__}
    lines = ",\n".join("  " + json.dumps(one) for one in CASES)
    sys.stdout.write(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


main()
