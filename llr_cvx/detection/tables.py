"""Read a table by pandas: CSV and its relatives, compressed or not, Parquet, Feather, Excel and JSON lines.

Files are read whole, up to a limit that holds for what they unpack to as well. Rows are numbered from 1, without the
header line.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llr_cvx.extras import needed, pip_install
from llr_cvx.inputs import contents, is_special
from llr_cvx.text import cells_of, is_number, separator_of

#: No table may hold more bytes than this, packed or unpacked.
MAX_BYTES = 2**30
#: Columns without a name are called so, with their number.
NAMELESS = "Unnamed: "
#: How files begin that may come through a pipe; all else is text.
MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".xlsx", b"\x1f\x8b": ".gz"}
UNPACK: dict[str, Callable[[io.BytesIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": lambda packed: (archive := zipfile.ZipFile(packed)).open(archive.namelist()[0]),
}


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame, the file that it came from, and, if that was text, the lines of its header and its rows."""

    source: str
    frame: Any
    lines: Sequence[int] = ()

    def place(self, row: int) -> str:
        """Where a row stands in the file: the line of a text, else its number."""
        return f"line {self.lines[row]}" if row < len(self.lines) else f"row {row}"


def read_table(
    path: str | Path, sheet: str | None = None, sep: str | None = None, decimal: str = ".", encoding: str | None = None
) -> Table:
    """Read a table; "-" is standard input.

    The ending of a name says what the file is; the first bytes of a pipe do. By default that is the first sheet of a
    workbook, or text in UTF-8 whose cells have the most frequent separator. Raises OSError or ValueError, which name
    the file, the place in it and the option that helps.
    """
    piped = str(path) == "-"
    name = "standard input" if piped else str(path)
    pandas = needed("pandas", "tables", "tables")
    data = contents(path, sys.stdin.buffer if piped else None, MAX_BYTES + 1)
    endings = [ending.lower() for ending in Path(path).suffixes]
    if piped or is_special(path):
        endings = [ending for start, ending in MAGIC.items() if data.startswith(start)]
    try:
        if endings and endings[-1] in UNPACK:
            with UNPACK[endings.pop()](io.BytesIO(data)) as packed:
                data = packed.read(MAX_BYTES + 1)
        _limit(len(data))
        ending, lines = endings[-1] if endings else "", list[int]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles of a workbook, and mixed types in a column
            if ending in (".parquet", ".pq", ".feather", ".arrow"):
                frame = _read_arrow(pandas, data, ending)
            elif ending in (".xlsx", ".xlsm"):
                frame = _read_excel(pandas, data, sheet)
                name += f", sheet {sheet}" if sheet else ""
            elif ending in (".jsonl", ".ndjson"):
                given = {"lines": True, "dtype": False, "convert_dates": False, "precise_float": True}
                frame = pandas.read_json(io.BytesIO(data), **given)
            else:
                frame, lines = _read_text(pandas, data, sep, decimal, encoding)
        return Table(name, _checked(frame), lines)
    except ImportError as error:
        raise ValueError(f"{name}: {error}; {pip_install('tables')}") from None
    except Exception as error:  # pandas, pyarrow and openpyxl raise many types, all with this meaning
        raise ValueError(f"{name} cannot be read: {error}") from None


def _limit(size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES:,} bytes")


def _checked(frame: Any) -> Any:
    """The frame with a checked header and numbered rows, without those that are empty."""
    names = ["" if name != name else str(name).strip() for name in frame.columns]
    if not any(names):
        raise ValueError("it is empty: a header line with column names, and rows, are needed")
    if all(map(is_number, names)):
        raise ValueError("the first line holds numbers; a header line with column names is needed")
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"the header names {twice[0]!r} twice: rename one of the two")
    frame = frame.set_axis([name or f"{NAMELESS}{k}" for k, name in enumerate(names)], axis=1)
    frame.index = range(1, len(frame) + 1)
    if not len(frame := frame.dropna(how="all")):
        raise ValueError("it has a header but no rows")
    return frame


def _read_text(pandas: Any, data: bytes, sep: str | None, decimal: str, encoding: str | None) -> tuple[Any, list[int]]:
    """The frame, and the lines of its header and its rows."""
    try:
        text = data.decode(encoding or "utf-8-sig")
    except UnicodeError as error:
        hint = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        raise ValueError(f"it is not {encoding or 'UTF-8'} text ({error}); try --encoding {hint}") from None
    if "\0" in text:
        raise ValueError("it holds NUL bytes: it is no text, or in another encoding (--encoding utf-16)")
    sep = sep or separator_of(text)
    lines, header = list[int](), list[str]()
    for line, row in cells_of(text, sep):
        header = header or row
        lines.append(line)
        if len(row) > len(header):  # pandas may take the surplus for names of the rows
            commas = "; if the commas are decimal commas, the cells need another separator" if sep == "," else ""
            raise ValueError(f"line {line}: {len(row)} cells where the first line has {len(header)}{commas}")
    if not any(map(str.strip, header)):
        return pandas.DataFrame(), lines
    given = {"sep": sep, "decimal": decimal, "float_precision": "round_trip", "low_memory": False}
    frame = pandas.read_csv(io.StringIO(text), skipinitialspace=True, na_values=["?"], **given)
    return frame.set_axis(header, axis=1), lines  # the names as they are: pandas makes them unique


def _read_arrow(pandas: Any, data: bytes, ending: str) -> Any:
    """Batch by batch, since a few bytes may stand for any number of equal values; row names become a column."""
    import pyarrow
    from pyarrow import ipc, parquet

    if ending in (".parquet", ".pq"):
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        schema, batches = file.schema_arrow, file.iter_batches()
    else:
        file = ipc.open_file(data)
        schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
    kept: list[Any] = []
    for batch in batches:
        kept.append(batch)
        _limit(sum(part.nbytes for part in kept))
    frame = pyarrow.Table.from_batches(kept, schema).to_pandas()
    named = frame.index.name is not None or not pandas.api.types.is_numeric_dtype(frame.index)
    return frame.reset_index() if named else frame


def _read_excel(pandas: Any, data: bytes, sheet: str | None) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        _limit(sum(part.file_size for part in book.infolist()))
    wanted = int(sheet) - 1 if sheet and sheet.isdecimal() else sheet or 0
    whole = pandas.read_excel(io.BytesIO(data), sheet_name=wanted, header=None, na_values=["?"])
    return whole[1:].infer_objects().set_axis(list(whole.iloc[0]) if len(whole) else [], axis=1)
