"""Linear systems of the Newton steps: conjugate gradients and preconditioners."""
