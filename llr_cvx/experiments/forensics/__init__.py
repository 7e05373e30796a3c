"""LLR's printed column, examined like evidence: every reading of the paper that was tried, leaks named as leaks."""
