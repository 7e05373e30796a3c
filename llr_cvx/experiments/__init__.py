"""The paper's experiments: methods, data, protocol, runner, tables and figures; `comparison`: other detectors.

`protocol` fixes the choices, `benchmarks` reads the data, `trials` turns a seed into a record, `runner` runs all
trials and stores each as it finishes, `tables` and `figures` present what was stored.
"""
