"""Read a table by pandas: CSV and its relatives, compressed or not, Parquet, Feather, Excel and JSON lines.

Files are read whole, up to a limit that holds for what they unpack to as well.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import re
import sys
import warnings
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from llr_cvx.extras import needed
from llr_cvx.inputs import contents
from llr_cvx.text import cells_of, is_number, separator_of

#: No table may hold more bytes than this, packed or unpacked.
MAX_BYTES = 2**30
#: Columns without a name are called so, with their number.
NAMELESS = "Unnamed: "
#: Where commas are decimal: a number whose points can separate thousands, and one whose point cannot.
THOUSANDS = r"[+-]?[1-9]\d{0,2}(\.\d{3})+"
WITH_COMMA, WITH_POINT = rf"({THOUSANDS}|[+-]?\d+)(,\d+)?", rf"(?!{THOUSANDS}$)[+-]?\d*\.\d+"


def read_table(path: str | Path, sheet: str | None = None, **text: Any) -> Any:
    """Read a table as a DataFrame; "-" is standard input. The first bytes say what it is; what is nothing else is text.

    Of a workbook, that is the first sheet unless another is named. `text` may give `sep`, `decimal`, `encoding`, and
    `id_column`, whose cells stay as written: 007 is no 7. The index says where each row stands: its name is "line" for
    a text, else "row". The name of the file is attrs["source"]. Raises OSError or ValueError, which name the file, the
    place in it and the option that helps.
    """
    name, stream = ("standard input", sys.stdin.buffer) if str(path) == "-" else (str(path), None)
    pandas, data = needed("pandas", "tables", "tables"), contents(path, stream, MAX_BYTES + 1)
    try:
        if unpack := next((unpack for start, unpack in UNPACK.items() if data.startswith(start)), None):
            is_workbook = b"[Content_Types].xml" in data  # an archive with this entry
            data = data if is_workbook else unpack(io.BytesIO(data)).read(MAX_BYTES + 1)
        _limit(len(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles of a workbook, and mixed types in a column
            if data.startswith((b"PAR1\x15", b"ARROW1\0")):
                frame = _read_arrow(data)
            elif data.startswith(b"PK\x03\x04"):
                frame = _read_excel(pandas, data, sheet)
                name += f", sheet {sheet}" if sheet else ""
            else:
                frame = _read_text(pandas, _decoded(data, text.pop("encoding", None)), **text)
        return _checked(frame, name)
    except Exception as error:  # pandas, pyarrow and openpyxl raise many types, all with this meaning
        raise ValueError(f"{name} cannot be read: {error}") from None


def _only_file(packed: io.BytesIO) -> Any:
    archive = zipfile.ZipFile(packed)
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        raise ValueError(f"the archive holds {len(names)} files, not one")
    return archive.open(names[0])


#: How packed files begin, and what unpacks them.
UNPACK: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open, b"PK\x03\x04": _only_file}


def _limit(size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES:,} bytes")


def _checked(frame: Any, source: str) -> Any:
    """The frame with a checked header, and rows found by their line or number."""
    names = ["" if name != name else str(name).strip() for name in frame.columns]
    if not any(names):
        raise ValueError("it is empty: a header line with column names, and rows, are needed")
    if all(map(is_number, names)):
        raise ValueError("the first line holds numbers; a header line with column names is needed")
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"the header names {twice[0]!r} twice: rename one of the two")
    frame = frame.set_axis([name or f"{NAMELESS}{k}" for k, name in enumerate(names)], axis=1)
    if frame.index.name != "line":
        frame = frame.set_axis(range(1, len(frame) + 1)).rename_axis("row")
    if not frame.notna().any(axis=None):
        raise ValueError("it has a header but no rows")
    frame.attrs["source"] = source
    return frame


def _read_text(pandas: Any, text: str, sep: str | None = None, decimal: str = ".", id_column: str | None = None) -> Any:
    """The frame, its rows named by their lines."""
    if text.lstrip().startswith("{"):
        return _read_json(pandas, text)
    sep = (sep or separator_of(text)).replace("\\t", "\t")
    lines, header = list[int](), list[str]()
    for line, row in cells_of(text, sep):
        header = header or row
        lines.append(line)
        if any(row[len(header) :]):  # pandas would leave the surplus out
            commas = "; if the commas are decimal commas, the cells need another separator" if sep == "," else ""
            raise ValueError(f"line {line}: {len(row)} cells where the first line has {len(header)}{commas}")
    if not any(map(str.strip, header)):
        return pandas.DataFrame()
    named = id_column and alike(header, id_column)
    given = {
        "converters": {header.index(named): lambda cell: cell.strip() or None} if named else None,  # 007 is no 7
        **{"sep": sep, "decimal": decimal, "float_precision": "round_trip", "low_memory": False, "index_col": False},
    }
    frame = pandas.read_csv(io.StringIO(text), skipinitialspace=True, na_values=["?"], **given)
    frame = frame.set_axis(header, axis=1)  # the names as they are: pandas makes them unique
    if len(frame) == len(lines) - 1:  # rarely, pandas and the csv module see different rows
        frame.index = pandas.Index(lines[1:], name="line")
    frame.attrs["decimal"] = decimal
    return frame


def _read_json(pandas: Any, text: str) -> Any:
    rows = dict[int, Any]()
    for k, line in enumerate(io.StringIO(text, newline=None), 1):
        try:
            rows |= {k: {**json.loads(line)}} if line.strip() else {}
        except (ValueError, TypeError) as error:
            raise ValueError(f"line {k} is no JSON object: {error}") from None
    return pandas.DataFrame([*rows.values()], [*rows]).rename_axis("line")


def _decoded(data: bytes, encoding: str | None) -> str:
    codecs.lookup(encoding or "utf-8")
    marked = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    for tried in ("utf-8-sig", encoding or marked):
        with suppress(UnicodeError):
            if "\0" not in (text := data.decode(tried)):
                return text
    other = "utf-16" if b"\0" in data else "latin-1"
    raise ValueError(f"it is no {encoding or 'UTF-8'} text, Parquet, Feather or xlsx; for text, try --encoding {other}")


def settle_points(tables: Sequence[Any], name: str) -> None:
    """Write the numbers of a column plainly where commas are decimal; what 1.234 is there, all of its cells say."""
    texts = [t for t in tables if name in t and t.attrs.get("decimal") == "," and t[name].dtype.kind == "O"]
    cells = [str(cell).strip() for table in texts for cell in table[name].dropna()]  # some may be booleans
    point, comma = ([cell for cell in cells if re.fullmatch(form, cell)] for form in (WITH_POINT, WITH_COMMA))
    if 2 * len(point + comma) > len(cells) and not (point and any(re.fullmatch(THOUSANDS, cell) for cell in comma)):
        plain = {cell: cell.replace(".", "").replace(",", ".") for cell in comma}
        for table in texts:
            table[name] = table[name].map(lambda cell: plain.get(str(cell).strip(), cell), na_action="ignore")


def alike(names: Any, name: str) -> str | None:
    """The column of this name, or the only one that differs from it in case and blanks."""
    plain = " ".join(name.split()).casefold()
    found = [other for other in names if " ".join(other.split()).casefold() == plain]
    return name if name in names else found[0] if len(found) == 1 else None


def _read_arrow(data: bytes) -> Any:
    """Batch by batch, since a few bytes may stand for any number of equal values; row names become a column."""
    pyarrow = needed("pyarrow", "tables", "Parquet and Feather")
    from pyarrow import dataset

    kind = dataset.ParquetFileFormat() if data.startswith(b"PAR1") else dataset.IpcFileFormat()
    file, kept, size = kind.make_fragment(pyarrow.BufferReader(data)), list[Any](), 0
    for batch in file.to_batches():
        kept.append(batch)
        _limit(size := size + batch.nbytes)
    frame = pyarrow.Table.from_batches(kept, file.physical_schema).to_pandas()
    return frame if frame.index.name is None and frame.index.inferred_type == "integer" else frame.reset_index()


def _read_excel(pandas: Any, data: bytes, sheet: str | None) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        needed("openpyxl", "tables", "workbooks")
        _limit(sum(part.file_size for part in book.infolist()))
    file = pandas.ExcelFile(io.BytesIO(data))
    names = {str(k): name for k, name in enumerate(file.sheet_names, 1)} | {name: name for name in file.sheet_names}
    if (wanted := names.get(sheet) if sheet else file.sheet_names[0]) is None:
        raise ValueError(f"it has no sheet {sheet!r}: its sheets are {', '.join(map(repr, file.sheet_names))}")
    whole = file.parse(wanted, header=None, na_values=["?"], dtype=object)
    whole = whole[whole.notna().any(axis=1).cummax()]  # from the first row that is not empty
    return whole[1:].infer_objects().set_axis(list(whole.iloc[0]) if len(whole) else [], axis=1)
