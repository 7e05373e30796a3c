"""Notebooks executed from top to bottom: by the tests, and in place by `python tests/kernels.py NOTEBOOK ...`."""

from __future__ import annotations

import contextlib
import queue
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

TIME_LIMIT = 120  # seconds a cell, on a busy machine


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


class Client(nbclient.NotebookClient):
    """Looks for replies every second: a control that draws answers on the same socket, which may swallow the wake-up.

    Without this the reply is found when the time limit of the cell ends.
    """

    started = False

    async def async_start_new_kernel_client(self) -> Any:
        client = await super().async_start_new_kernel_client()
        self.started = True
        get_msg = client.shell_channel.get_msg

        async def look_again(timeout: float) -> Any:
            for _ in range(int(timeout)):
                with contextlib.suppress(queue.Empty):
                    return await get_msg(timeout=1)
            raise queue.Empty

        client.shell_channel.get_msg = look_again
        return client


def executed(notebook: Any, folder: Path, tries: int = 2) -> Any:
    """The notebook after a fresh run; a kernel that does not start gets a second chance, a cell that fails none."""
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = Client(notebook, timeout=TIME_LIMIT, resources={"metadata": {"path": str(folder)}})
    try:
        return client.execute()
    except (RuntimeError, nbclient.exceptions.DeadKernelError):
        if client.started or tries == 1:
            raise
        return executed(notebook, folder, tries - 1)


def execute_in_place(path: Path) -> None:
    """Write the outputs of a fresh run, without times and without the state of controls, which the site cannot use."""
    notebook = executed(nbformat.read(path, as_version=4), path.parent)
    notebook.metadata.pop("widgets", None)
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        cell.outputs = [] if "remove-cell" in cell.metadata.get("tags", []) else one_box(cell.outputs)
    nbformat.write(notebook, path)


def one_box(outputs: list[Any]) -> list[Any]:
    """What was printed in a row as one text, however it arrived."""
    boxes: list[Any] = []
    for output in outputs:
        if boxes and output.output_type == boxes[-1].output_type == "stream" and output.name == boxes[-1].name:
            boxes[-1].text += output.text
        else:
            boxes.append(output)
    return boxes


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute_in_place(Path(name))
        print(f"{name}: executed")
