"""LLR beside common outlier detectors on public data: sets, detectors, trials, report."""
