"""Shared by the objective and the solvers of this benchmark."""
