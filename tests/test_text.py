"""Names from a table are data: to a terminal, and to a spreadsheet."""

from __future__ import annotations

import pytest

from llr_cvx.text import csv_cell, printable, printable_lines


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋"])
def test_formulas_are_neutralised(start: str) -> None:
    assert csv_cell(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


@pytest.mark.parametrize("separator", [";", "\t", "\r\n", "\n"])
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝"])
def test_formulas_are_neutralised_where_another_separator_is_the_custom(start: str, separator: str) -> None:
    assert csv_cell(f"a{separator}{start}cmd") == f"a{separator}'{start}cmd"
    assert csv_cell(f'a{separator} "{start}cmd') == f"""a{separator}' "{start}cmd"""


@pytest.mark.parametrize(
    "number", ["-5", "+3.5", "-1e-5", "-.5", -5, -0.25, 3, None, "", "a-b", "5=5", "'quoted", "a; b", "a;"]
)
def test_numbers_and_harmless_text_stay(number: object) -> None:
    assert csv_cell(number) == number


@pytest.mark.parametrize("text", ["-5+1", "-inf", "+1_000", "--5", "-1e", "+"])
def test_what_only_looks_like_a_number_does_not(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


def test_what_controls_a_terminal_is_shown_as_text() -> None:
    hostile = "a\x1b]0;title\x07\r\nb\x9b31m\u202egnp.exe\u2028\x00\t"
    shown = printable(hostile)
    assert shown.isprintable()
    assert shown == r"a\x1b]0;title\x07\r\nb\x9b31m\u202egnp.exe\u2028\x00\t"
    assert printable("Größe in µm, 温度") == "Größe in µm, 温度"


def test_the_lines_of_a_text_stay() -> None:
    assert printable_lines("a\tb\x1b\nc\r\n") == "a\tb\\x1b\nc\\r\n"
