"""Turns LaTeX into MathML for browsers: what a converter makes of it, set as TeX sets it.

Browsers know MathML Core. There columns are aligned by styles and not by attributes, letters have no variants but those
of Unicode, and a function is a name like any other, without a space before it.
"""

from __future__ import annotations

import unicodedata
from xml.etree.ElementTree import Element, fromstring, register_namespace, tostring

from combdiff.optional import optional

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_TAG = f"{{{_NAMESPACE}}}"
_LIMITS = ("∑", "∏", "max", "min")
_OPENING, _CLOSING = "([{|‖", ")]}|‖"
_PATTERNS = (
    # a bar without a side would be a sign between two things
    (r"\lvert", r"\left|"),
    (r"\rvert", r"\right|"),
    (r"\lVert", r"\left\|"),
    (r"\rVert", r"\right\|"),
    # TeX's own space before a bracket, which browsers do not put there
    (r"\!", ""),
    # a table of equations, under the name that the converter knows
    ("{aligned}", "{align*}"),
)


def mathml(latex: str) -> str:
    """A formula of ours, which a browser displays in a line of its own. Needs latex2mathml.

    >>> print(mathml("x"))
    <math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow><mi>x</mi></mrow></math>
    """
    converter = optional("latex2mathml.converter", "mathml", "MathML")
    for ours, theirs in _PATTERNS:
        for end in ("left", "right"):
            latex = latex.replace(rf"\{end}{ours}", theirs)
        latex = latex.replace(ours, theirs)
    tree = fromstring(converter.convert(latex, display="block"))
    for parent in list(tree.iter()):
        _align(parent)
        _make_bold(parent)
        _put_limits_below(parent)
        _space_functions(parent)
        _set_signs_tight(parent)
    register_namespace("", _NAMESPACE)
    return tostring(tree, encoding="unicode")


def _align(table: Element) -> None:
    """Columns to the left or to the right; equations without a gap before their signs."""
    if _name(table) != "mtable":
        return
    for cell in table.iter(f"{_TAG}mtd"):
        side = cell.attrib.pop("columnalign", "center")
        gap = f"; padding-{side}: 0" if table.get("displaystyle") else ""
        inner = {"left": "left", "right": "right"}.get(side)
        if inner:
            # Chromium aligns what is no text by its own word
            cell.set("style", f"text-align: {inner}; text-align: -webkit-{inner}{gap}")


def _make_bold(letter: Element) -> None:
    if letter.get("mathvariant") != "bold":
        return
    del letter.attrib["mathvariant"]
    letter.text = "".join(map(_bold, letter.text or ""))


def _bold(sign: str) -> str:
    kind = "DIGIT" if sign.isdigit() else "CAPITAL" if sign.isupper() else "SMALL"
    name = unicodedata.name(sign).split()[-1] if sign.isalnum() else ""
    return unicodedata.lookup(f"MATHEMATICAL BOLD {kind} {name}") if name else sign


def _put_limits_below(script: Element) -> None:
    """What a Σ runs over stands below it, in brackets too."""
    if _name(script) == "msub" and script[0].text in _LIMITS:
        script.tag = f"{_TAG}munder"


def _space_functions(row: Element) -> None:
    """A thin space before a function behind another factor, and behind one without brackets."""
    before: Element | None = None
    for part in list(row) if _name(row) in ("mrow", "mtd") else ():
        base = part[0] if _name(part) in ("msub", "munder", "msup") else part
        is_function = _is_function(base)
        if is_function:
            base.tag = f"{_TAG}mi"
        if before is not None and (
            (is_function and _is_factor(before)) or (_holds_function(before) and not _is_bracket(part))
        ):
            row.insert(list(row).index(part), Element(f"{_TAG}mspace", width="0.167em"))
        before = part


def _set_signs_tight(parent: Element) -> None:
    """No space behind a minus that subtracts from nothing, nor around the signs in a script."""
    if _name(parent) in ("msub", "msup", "munder", "msubsup"):
        for script in parent[1:]:
            for sign in script.iter(f"{_TAG}mo"):
                sign.attrib.update(lspace="0", rspace="0")
    before: Element | None = None
    for part in parent:
        follows = before is not None and _name(before) == "mo" and not _is_factor(before)
        if _name(part) == "mo" and part.text in ("−", "+") and follows:
            part.set("form", "prefix")
        before = part


def _holds_function(part: Element) -> bool:
    return _is_function(part[0] if _name(part) in ("msub", "munder", "msup") else part)


def _is_function(part: Element) -> bool:
    """Whether it is a word, such as exp."""
    text = part.text or ""
    return _name(part) in ("mi", "mo") and len(text) > 1 and text.isalnum()


def _is_factor(part: Element) -> bool:
    if _name(part) == "mo":
        return (part.text or " ") in _CLOSING and part.get("form") != "prefix"
    return _name(part) not in ("mspace", "mtext", "mphantom") and (part.text or len(part) > 0) != ""


def _is_bracket(part: Element) -> bool:
    """Whether it opens a bracket."""
    first = part[0] if _name(part) == "mrow" and len(part) else part
    return _name(first) == "mo" and (first.text or " ") in _OPENING


def _name(part: Element) -> str:
    return part.tag.removeprefix(_TAG)
