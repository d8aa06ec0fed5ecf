"""How plain text and LaTeX write what linear algebra has signs for: Aᵀ and `A^{\\mathsf{T}}`; read by `matrix_text`."""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.language.printing.document import ATOM, SUM
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS


@dataclass(frozen=True, slots=True)
class Notation:
    """How one medium writes what has no common form; the strings are formats, `{}` being the operand."""

    transpose: str
    adjoint: str
    inverse: str
    transposed_inverse: str
    adjoint_inverse: str
    conjugate: str
    conjugate_binds: int
    trace: str
    diag: str
    diagonal: str
    ones: str
    identity: str
    pi: str
    imaginary: str
    entrywise: str
    norm: str
    frobenius: str
    at_most: str
    less: str
    reciprocal: str
    divided: str
    khatri_rao: str
    kronecker: str
    vec: str
    order: str
    unfolding: str
    contracted: Mapping[int, str]
    fraction: str
    power: str
    entrywise_power: str
    item: str
    gradient: str
    pullback: str
    functions: Mapping[str, str]
    of_matrices: Mapping[str, str]

    def made_of(self, kind: str, function: str) -> str:
        """The gradient, the pullback, the adjoint or the inverse of a map that is written `function`."""
        match kind:
            case "grad":
                return self.gradient.format(function)
            case "adjoint":
                return self.adjoint.format(function)
            case "inverse":
                return self.power.format(function, -1)
            case _:
                return self.pullback.format(function)


TEXT = Notation(
    transpose="{}ᵀ",
    adjoint="{}†",
    inverse="{}⁻¹",
    transposed_inverse="{}⁻ᵀ",
    adjoint_inverse="{}⁻†",
    conjugate="conj({})",
    conjugate_binds=SUM,
    trace="tr({})",
    diag="diag({})",
    diagonal="diagonal({})",
    ones="𝟏",
    identity="𝐈",
    pi="π",
    imaginary="im",
    entrywise=" ∘ ",
    norm="‖{}‖",
    frobenius="‖{}‖",
    at_most="[{} ≤ {}]",
    less="[{} < {}]",
    reciprocal="{}⁺",
    divided="{} ⊘ {}",
    khatri_rao="{} ⊙ {}",
    kronecker="{} ⊗ {}",
    vec="vec({})",
    order="{}^({})",
    unfolding="{}_({})",
    contracted={1: " · ", 2: " : "},
    fraction="{}/{}",
    power="{}^{}",
    entrywise_power="{}^∘{}",
    item="{}[{}]",
    gradient="∇{}",
    pullback="𝒫({})",
    functions={},
    of_matrices={name: f"{name}({{}})" for name in MATRIX_FUNCTIONS},
)


def quoted(text: str) -> str:
    """`text` for a format string, its braces as they are."""
    return text.replace("{", "{{").replace("}", "}}")


def pattern_of(name: str, notation: Notation) -> str:
    """How a function that was registered is written."""
    return _pattern(SCALAR_FUNCTIONS[name]) if notation is LATEX and name in SCALAR_FUNCTIONS else name + "({})"


def _pattern(row: ScalarFunction) -> str:
    return row.latex.replace("{0}", "{}") if "{0}" in row.latex else quoted(row.latex) + "({})"


_WRITTEN_ROUND = {
    "sqrt": r"\sqrt{{{}}}",
    "abs": r"\lvert {} \rvert",
    "abs2": r"\lvert {} \rvert^{{2}}",
}
LATEX = Notation(
    transpose=r"{}^{{\mathsf{{T}}}}",
    adjoint=r"{}^{{\dagger}}",
    inverse=r"{}^{{-1}}",
    transposed_inverse=r"{}^{{-\mathsf{{T}}}}",
    adjoint_inverse=r"{}^{{-\dagger}}",
    conjugate="{}^{{*}}",
    conjugate_binds=ATOM,
    trace=r"\operatorname{{tr}}({})",
    diag=r"\operatorname{{diag}}({})",
    diagonal=r"\operatorname{{diagonal}}({})",
    ones=r"\mathbf{1}",
    identity=r"\mathbf{I}",
    pi=r"\pi",
    imaginary=r"\mathrm{i}",
    entrywise=r" \circ ",
    norm=r"\lVert {} \rVert",
    frobenius=r"\lVert {} \rVert_{{F}}",
    at_most=r"\left[{} \le {}\right]",
    less=r"\left[{} < {}\right]",
    reciprocal="{}^{{+}}",
    divided=r"{} \oslash {}",
    khatri_rao=r"{} \odot {}",
    kronecker=r"{} \otimes {}",
    vec=r"\operatorname{{vec}}({})",
    order="{}^{{({})}}",
    unfolding="{}_{{({})}}",
    contracted={1: r" \cdot ", 2: " : "},
    fraction=r"\frac{{{}}}{{{}}}",
    power="{}^{{{}}}",
    entrywise_power=r"{}^{{\circ {}}}",
    item=r"{}_{{({})}}",
    gradient=r"\nabla {}",
    pullback=r"\mathcal{{P}}({})",
    functions={name: _WRITTEN_ROUND.get(name, _pattern(row)) for name, row in SCALAR_FUNCTIONS.items()}
    | {name: rf"\operatorname{{{{{name}}}}}({{}})" for name in ("softmax", "logsumexp")},
    of_matrices={
        name: row.latex if row.latex.startswith("{}^") else row.latex.replace("{}", "({})")
        for name, row in MATRIX_FUNCTIONS.items()
    },
)
