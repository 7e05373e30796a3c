"""The paper's experiments: methods, data, protocol, runner, tables and figures.

One way through: `protocol` says what is fixed, `benchmarks` reads the data, `trials` turns one seed into one
record, `runner` does that for all of them and stores each at once, `tables` and `figures` print what was stored.
"""
