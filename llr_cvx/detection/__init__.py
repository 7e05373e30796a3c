"""Outlier detection: the estimator, scores of new rows, explanations, and tables in and out."""
