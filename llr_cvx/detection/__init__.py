"""From samples to outliers with reasons: the estimator, new rows, explanations, tables."""
