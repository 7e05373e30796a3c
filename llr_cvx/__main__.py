"""`python -m llr_cvx`: the command `llr-cvx`, for where its folder is not on the path."""

from __future__ import annotations

from llr_cvx.entry import main

if __name__ == "__main__":
    main(prog_name="python -m llr_cvx")
