"""Figure 1 beyond the paper: other outliers, correlation and fractions, and how well planted features are found."""
