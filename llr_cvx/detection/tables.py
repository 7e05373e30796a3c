"""Read a table by pandas: CSV and its relatives, compressed or not, Parquet, Feather, Excel and JSON lines.

Files are read whole, up to a limit that holds for what they unpack to as well. Rows are numbered from 1, without the
header line.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from llr_cvx.extras import pip_install
from llr_cvx.inputs import is_special, opened
from llr_cvx.text import SEPARATORS, is_number

#: No table may hold more bytes than this, packed or unpacked.
MAX_BYTES = 2**30
#: How files begin that may come through a pipe; all else is text.
MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".xlsx", b"\x1f\x8b": ".gz"}
UNPACK: dict[str, Callable[[io.BytesIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": lambda packed: (archive := zipfile.ZipFile(packed)).open(archive.namelist()[0]),
}


@dataclass(frozen=True)
class Format:
    """How to read text and workbooks; None: the most frequent separator, UTF-8, the first sheet."""

    sep: str | None = None
    decimal: str = "."
    encoding: str | None = None
    sheet: str | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame, the file that it came from, and the text of that file with its separator, if it was text."""

    source: str
    frame: Any
    text: str = ""
    sep: str = ","

    def place(self, row: int) -> str:
        """Where a row stands in the file: the line of a text, else its number."""
        line = next((line for line, _ in islice(_cells(self.text, self.sep), row, None)), 0)
        return f"line {line}" if line else f"row {row}"  # no line: no text, or one with a line of empty quotes


def read_table(path: str | Path, how: Format = Format()) -> Table:
    """Read a table; "-" is standard input.

    The ending of a name says what the file is; the first bytes of a pipe do. Raises OSError or ValueError, which name
    the file, the place in it and the option that helps.
    """
    piped = str(path) == "-"
    name = "standard input" if piped else str(path)
    try:
        import pandas
    except ImportError:
        raise ValueError(f"{name}: tables need pandas: {pip_install('tables')}") from None
    try:
        with opened(path, sys.stdin.buffer if piped else None) as source:
            data = source.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such file") from None
    except OSError as error:
        raise OSError(f"cannot read {name}: {error.strerror or error}") from None
    endings = [ending.lower() for ending in Path(path).suffixes]
    if piped or is_special(path):
        endings = [ending for start, ending in MAGIC.items() if data.startswith(start)]
    try:
        if endings and endings[-1] in UNPACK:
            with UNPACK[endings.pop()](io.BytesIO(data)) as packed:
                data = packed.read(MAX_BYTES + 1)
        _limit(len(data))
        ending, text, sep = endings[-1] if endings else "", "", ","
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles of a workbook, and mixed types in a column
            if ending in (".parquet", ".pq", ".feather", ".arrow"):
                frame = _read_arrow(pandas, data, ending)
            elif ending in (".xlsx", ".xlsm"):
                frame = _read_excel(pandas, data, how)
                name += f", sheet {how.sheet}" if how.sheet else ""
            elif ending in (".jsonl", ".ndjson"):
                given = {"lines": True, "dtype": False, "convert_dates": False, "precise_float": True}
                frame = pandas.read_json(io.BytesIO(data), **given)
            else:
                frame, text, sep = _read_text(pandas, data, how)
        return Table(name, _checked(frame), text, sep)
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
    frame = frame.set_axis([name or f"Unnamed: {k}" for k, name in enumerate(names)], axis=1)
    frame.index = range(1, len(frame) + 1)
    if not len(frame := frame.dropna(how="all")):
        raise ValueError("it has a header but no rows")
    return frame


def _cells(text: str, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a text and the lines on which they end; blank lines count for none."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    return ((reader.line_num, row) for row in reader if len(row) > 1 or any(map(str.strip, row)))


def _read_text(pandas: Any, data: bytes, how: Format) -> tuple[Any, str, str]:
    try:
        text = data.decode(how.encoding or "utf-8-sig")
    except UnicodeError as error:
        hint = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        raise ValueError(f"it is not {how.encoding or 'UTF-8'} text ({error}); try --encoding {hint}") from None
    if "\0" in text:
        raise ValueError("it holds NUL bytes: it is no text, or in another encoding (--encoding utf-16)")
    sep = how.sep or max(SEPARATORS, key=text.lstrip("\r\n").partition("\n")[0].count)
    header = next(_cells(text, sep), (0, []))[1]
    if not any(map(str.strip, header)):
        return pandas.DataFrame(), text, sep
    for line, row in _cells(text, sep):
        if len(row) > len(header):  # pandas may take the surplus for names of the rows
            commas = "; if the commas are decimal commas, the cells need another separator" if sep == "," else ""
            raise ValueError(f"line {line}: {len(row)} cells where the first line has {len(header)}{commas}")
    given = {"sep": sep, "decimal": how.decimal, "float_precision": "round_trip", "low_memory": False}
    frame = pandas.read_csv(io.StringIO(text), skipinitialspace=True, na_values=["?"], **given)
    return frame.set_axis(header, axis=1), text, sep  # the names as they are: pandas makes them unique


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


def _read_excel(pandas: Any, data: bytes, how: Format) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        _limit(sum(part.file_size for part in book.infolist()))
    sheet: Any = how.sheet or 0
    if isinstance(sheet, str) and sheet.isdecimal():
        sheet = int(sheet) - 1
    whole = pandas.read_excel(io.BytesIO(data), sheet_name=sheet, header=None, na_values=["?"])
    return whole[1:].infer_objects().set_axis(list(whole.iloc[0]) if len(whole) else [], axis=1)
