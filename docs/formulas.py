"""TeX as MathML that every browser draws alike, without scripts or network access: for the site and the slides."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import latex2mathml.converter

MATHML = "http://www.w3.org/1998/Math/MathML"
LIMITS = ("\N{N-ARY SUMMATION}", "max", "min", "argmax", "argmin")
SIGNS = ("\N{MINUS SIGN}", "+", "\N{PLUS-MINUS SIGN}")
CLOSING = (")", "]", "}", "|", "\N{DOUBLE VERTICAL LINE}", "\N{HORIZONTAL ELLIPSIS}")
FUNCTIONS = ("log", "exp", "max", "min")
THIN = "0.17em"
ElementTree.register_namespace("", MATHML)


def mathml(tex: str, display: str) -> str:
    """A formula as a `<math>` element; `display` is "inline" or "block"."""
    tex = re.sub(r"\\(begin|end)\{(split|align\*?|aligned)\}", r"\\\1{aligned}", tex)
    tex = re.sub(r"\\arg\s*\\(max|min)(?![a-z])", r"\\operatorname*{arg\1}", tex)
    tree = ElementTree.fromstring(latex2mathml.converter.convert(tex, display=display))
    for element in list(tree.iter()):
        as_browsers_draw_it(element, display)
    return ElementTree.tostring(tree, encoding="unicode")


def as_browsers_draw_it(element: ElementTree.Element, display: str) -> None:
    """Replace what depends on the reader's math font, or is not in MathML Core, by what every browser draws."""
    tag, children = element.tag.removeprefix(f"{{{MATHML}}}"), list(element)
    last = "".join(children[-1].itertext()) if children else ""
    if tag == "mrow":
        space_operators(children)
    if tag == "mo" and element.text in ("\N{DOUBLE VERTICAL LINE}", "|"):
        element.attrib.setdefault("stretchy", "false")  # else the bar before a term grows with what follows,
        element.attrib.update(lspace="0", rspace="0")  # and one that is taken for an operator stands apart
    elif tag == "mo" and element.text == "*":  # of an optimum: else it stands above the exponents
        element.text = "\N{ASTERISK OPERATOR}"
        element.attrib.update(lspace="0", rspace="0")
    elif tag == "mo" and element.text == "\N{INFINITY}":  # a number, not an operator with room around it
        element.tag = f"{{{MATHML}}}mi"
    elif tag in ("msup", "msubsup") and set(last) == {"\N{PRIME}"}:  # shrunk twice, it is invisible
        if tag == "msubsup":
            element[:] = [ElementTree.Element(f"{{{MATHML}}}msub"), children[-1]]
            element[0].extend(children[:-1])
        element.tag = f"{{{MATHML}}}mrow"
        children[-1].tag = f"{{{MATHML}}}mtext"
        children[-1].set("style", "font-family: serif")
    elif tag == "munder" and last == "\N{BOTTOM CURLY BRACKET}":  # few fonts stretch it
        element.tag = f"{{{MATHML}}}mrow"
        element.set("style", "border-bottom: 1px solid; padding-bottom: 0.25em")
        element.remove(children[-1])
    elif tag == "menclose":
        element.tag = f"{{{MATHML}}}mrow"
        element.set("style", "border: 1px solid; padding: 0.5em")
        del element.attrib["notation"]
    elif tag == "msub" and display == "block" and (children[0].text or "") in LIMITS:
        element.tag = f"{{{MATHML}}}munder"


def space_operators(row: list[ElementTree.Element]) -> None:
    """Room around signs, slashes and names of functions as TeX sets it; browsers go by their place alone."""
    before = None  # what was last, spaces aside
    for child, after in zip(row, [*row[1:], None], strict=True):
        tag = child.tag.removeprefix(f"{{{MATHML}}}")
        if child.text in SIGNS and is_operand(before):
            operator(child, "infix", "0.22em", "0.22em")
        elif child.text in SIGNS:
            operator(child, "prefix", "0", "0")
        elif child.text == "/":
            operator(child, "infix", "0", "0")
        elif child.text in FUNCTIONS and tag in ("mi", "mo"):
            opening = after is None or after.text == "("
            operator(child, "infix", THIN if is_operand(before) else "0", "0" if opening else THIN)
        before = before if tag == "mspace" else child


def is_operand(element: ElementTree.Element | None) -> bool:
    """Whether a sign after this element stands between two terms: not after an operator, a bracket or a sum."""
    if element is None:
        return False
    base = element[0] if element.tag.endswith(("msub", "munder")) else element
    return not base.tag.endswith("mo") or base.text in CLOSING


def operator(element: ElementTree.Element, form: str, before: str, after: str) -> None:
    """Make an element an operator with its own room."""
    element.tag = f"{{{MATHML}}}mo"
    element.attrib.update(form=form, lspace=before, rspace=after)
