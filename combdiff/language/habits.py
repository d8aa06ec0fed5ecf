"""Remedies for notation of mathematics, NumPy, Julia and MATLAB: what to write instead.

One row a word. In the rows of functions {0} and {1} are the arguments, as far as they are names or entries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from combdiff.errors import Span
from combdiff.language.parsing.syntax import Apply, Expr, Name, Numeral

_SOLVE = "to solve {0} y = b for y, write {0} \\ b"
LOOP = "write sum(i, x(i)) for a sum, iterate((s, t) -> s / 2 + x(t), 0, n) for a loop"
_STEP = "write where(a <= b, e, f) for e where a <= b, and f elsewhere"

FUNCTIONS = {
    # of matrices and vectors
    **dict.fromkeys(("trace", "Tr", "Trace"), "write tr({0})"),
    **dict.fromkeys(("frob", "frobenius", "fro", "norm2", "normF"), "write norm({0})"),
    "norm1": "write sum(abs.({0}))",
    **dict.fromkeys(("nuclear", "nuclear_norm", "nucnorm", "tracenorm"), "write sum(svdvals({0}))"),
    "opnorm": "write svdvals({0})(0), the largest singular value",
    "cond": "write maximum(i, svdvals({0})(i)) / minimum(i, svdvals({0})(i))",
    "logm": "there is no logarithm of a matrix; its trace is logdet({0})",
    "rank": "the rank of a matrix has no derivative; sum(svdvals({0})) is its nuclear norm",
    "vec": "leave it out: sums and norms take whole matrices, and vec(A)' * vec(B) is tr(A' * B)",
    "diagm": "write Diagonal({0}), the matrix with this diagonal",
    "hadamard": "write {0} .* {1}",
    **dict.fromkeys(("ones", "zeros"), "write a number beside an operator with a dot, 1 .+ x, or a map: i -> 1"),
    "slogdet": "write logdet({0}), or logabsdet({0}) where the determinant may be negative",
    "matrix_exp": "write expm({0})",
    "expmat": "write expm({0})",
    "chol": "write cholesky({0}), the lower factor",
    "eigvalsh": "write eigvals({0}), in ascending order",
    **dict.fromkeys(
        ("eig", "eigh", "eigen", "eigvecs"),
        "there are no eigenvectors, whose signs are arbitrary; write eigvals({0}) for the eigenvalues, and a matrix "
        "that is made of both as sqrtm({0}), expm({0}) or {0} \\ b",
    ),
    "svd": "there are no singular vectors, whose signs are arbitrary; write svdvals({0}) for the singular values",
    "pinv": "of a matrix of full column rank, write inv({0}' * {0}) * {0}'",
    "solve": _SOLVE,
    **dict.fromkeys(("vector_product", "crossproduct", "cross_product"), "write cross({0}, {1})"),
    "inner": "write {0}' * {1}",
    "vdot": "write {0}' * {1}",
    "matmul": "write {0} * {1}",
    "outer": "write {0} * {1}' for vectors",
    "kron": "write the product with an index for each slot: (i, j, k, l) -> {0}(i, j) * {1}(k, l)",
    "einsum": "write the sum: sum((j, k), A(i, j) * B(j, k))",
    "adj": "write {0}'",
    **dict.fromkeys(("eye", "identity"), "write I, beside a matrix, or (i, j) -> delta(i, j, 1)"),
    **dict.fromkeys(
        ("flatten", "ravel", "reshape"),
        "leave it out: a tensor keeps its indices, and a sum takes several, sum((i, j), A(i, j)^2)",
    ),
    "numel": "name the sizes, A::RM{{n, m}}, and write n * m",
    "laplacian": "write (x::RV{{n}}) -> sum(i, jvp(grad(f))(x, j -> delta(i, j, 1))(i)) for a map f of vectors",
    "average": "write mean(i, {0}(i))",
    "std": "define m = mean(i, x(i)), and write sqrt(mean(i, (x(i) - m)^2))",
    "var": "define m = mean(i, x(i)), and write mean(i, (x(i) - m)^2)",
    "variance": "define m = mean(i, x(i)), and write mean(i, (x(i) - m)^2)",
    "len": "write length({0})",
    "diff": "of a vector, name the size, x::RV{{n}}, and write (i::N{{n-1}}) -> x(i + 1) - x(i); "
    "the derivative of a function f at x is grad(f)(x)",
    **dict.fromkeys(("reverse", "flip", "flipud"), "name the size, {0}::RV{{n}}, and write i -> {0}(n - 1 - i)"),
    **dict.fromkeys(
        ("roll", "circshift"),
        "give the index a periodic domain, {0}::(Z) -> R after `@domain Z begin periodic = true end`, "
        "and write i -> {0}(i - 1)",
    ),
    **dict.fromkeys(
        ("conv", "convolve"),
        "name the size, {0}::RV{{n}}, and write (k::N{{n}}) -> sum(j, where(0 <= k - j, {0}(k - j) * {1}(j)))",
    ),
    **dict.fromkeys(("fft2", "fftn"), "transform one index after the other: (i, k) -> fft(j -> {0}(i, j))(k)"),
    **dict.fromkeys(("rfft", "dft"), "write fft({0})"),
    **dict.fromkeys(
        ("ndtr", "Phi", "Φ", "cdf", "norm_cdf", "normal_cdf", "pnorm", "NormalCDF"),
        "write normcdf({0}), the distribution function of the standard normal distribution",
    ),
    **dict.fromkeys(
        ("log_ndtr", "logcdf", "norm_logcdf", "normlogcdf"), "write lognormcdf({0}), the logarithm of normcdf({0})"
    ),
    **dict.fromkeys(
        ("pdf", "norm_pdf", "normal_pdf", "dnorm", "NormalPDF"),
        "write normpdf({0}), or normpdf((x - m) / s) / s for the mean m and the deviation s",
    ),
    **dict.fromkeys(
        ("logpdf", "norm_logpdf", "normlogpdf", "normal_lpdf", "normal_logpdf", "lognormpdf"),
        "write log(normpdf((x - m) / s) / s) for the mean m and the deviation s",
    ),
    **dict.fromkeys(
        ("concat", "concatenate", "vcat", "hcat", "append", "stack", "vstack", "hstack", "cat"),
        "write what is done with each part: sum({0}) + sum({1}); of numbers, [a, b, c] is a vector",
    ),
    "cov": "define m = k -> mean(i, X(i, k)), and write (k, l) -> mean(i, (X(i, k) - m(k)) * (X(i, l) - m(l)))",
    **dict.fromkeys(("corr", "corrcoef", "pearsonr"), "write cor(x, y) for two vectors"),
    "cumprod": "name the size, {0}::RV{{n}}, and write (i::N{{n}}) -> prod(j, j <= i, {0}(j))",
    "normalize": "write {0} / norm({0})",
    **dict.fromkeys(
        ("permutedims", "swapaxes", "moveaxis"), "write a map with the indices in their new order: (j, i) -> A(i, j)"
    ),
    **dict.fromkeys(("cosine_similarity", "cossim"), "write {0}' * {1} / (norm({0}) * norm({1})) for two vectors"),
    **dict.fromkeys(("mse", "MSE", "mse_loss"), "write mean(({0} - {1}) .^ 2)"),
    **dict.fromkeys(("mae", "MAE", "l1_loss"), "write mean(abs.({0} - {1}))"),
    "entropy": "write -sum(i, {0}(i) * log({0}(i)))",
    **dict.fromkeys(("KL", "kl", "kl_div", "kldiv"), "write sum(i, {0}(i) * log({0}(i) / {1}(i)))"),
    **dict.fromkeys(
        ("cross_entropy", "crossentropy"),
        "of scores A and labels y::(N) -> N, write -sum(i, log(softmax(k, A(i, k))(y(i))))",
    ),
    **dict.fromkeys(("log_softmax", "logsoftmax"), "write log(softmax(j, A(i, j))(k)), which does not underflow"),
    **dict.fromkeys(("lse", "log_sum_exp", "LogSumExp", "logSumExp"), "write logsumexp({0})"),
    **dict.fromkeys(("cdist", "pdist", "pairwise_distances"), "write (i, j) -> norm(k -> X(i, k) - Y(j, k))"),
    **dict.fromkeys(("one_hot", "onehot"), "write delta(y(i), k, 1) for an array of integers y::(N) -> N"),
    "findmax": "write maximum(i, x(i)) for the largest entry, and argmax(i, x(i)) for its index",
    "findmin": "write minimum(i, x(i)) for the least entry, and argmin(i, x(i)) for its index",
    **dict.fromkeys(("median", "quantile", "percentile"), "there is no function of ranks; mean(x) is the mean"),
    "sort": "the language has no order of entries; write maximum(i, x(i)), minimum(i, x(i)) or argmax(i, x(i))",
    # of numbers
    "ln": "write log({0})",
    **dict.fromkeys(("pow", "power"), "write {0}^{1}"),
    "cosec": "write csc({0})",
    **dict.fromkeys(("acot", "arccot"), "write atan2(1, {0})"),
    **dict.fromkeys(("asec", "arcsec"), "write acos(1 / {0})"),
    **dict.fromkeys(("acsc", "arccsc"), "write asin(1 / {0})"),
    **dict.fromkeys(("acoth", "arcoth"), "write atanh(1 / {0})"),
    **{name + "d": f"write {name}(deg2rad({{0}}))" for name in ("sin", "cos", "tan")},
    **{name + "pi": f"write {name}(pi * {{0}})" for name in ("sin", "cos")},
    **dict.fromkeys(("log1mexp", "log1mexpm"), "write log(1 - exp(-{0})), which keeps its digits"),
    **dict.fromkeys(("probit", "qnorm", "ndtri", "norm_ppf", "ppf", "invnormcdf"), "write norminv({0})"),
    "frac": "write mod({0}, 1)",
    "arcsin": "write asin({0})",
    "arccos": "write acos({0})",
    "arctan": "write atan({0})",
    "arctan2": "write atan2({0}, {1})",
    "arcsinh": "write asinh({0})",
    "arccosh": "write acosh({0})",
    "arctanh": "write atanh({0})",
    **dict.fromkeys(("expit", "σ"), "write sigmoid({0})"),
    **dict.fromkeys(("gammaln", "loggamma", "lnΓ", "logΓ", "lngamma"), "write lgamma({0})"),
    "Γ": "write gamma({0})",
    **dict.fromkeys(
        ("binomial", "binom", "comb", "nchoosek", "choose"),
        "write exp(lgamma({0} + 1) - lgamma({1} + 1) - lgamma({0} - {1} + 1))",
    ),
    "xlogy": "write where(0 < {0}, {0} * log({1}))",
    **dict.fromkeys(("leaky_relu", "leakyrelu", "LeakyReLU"), "write max({0}, 0.01 * {0})"),
    "log_sigmoid": "write logsigmoid({0})",
    **dict.fromkeys(("logit_inv", "invlogit", "inv_logit"), "write sigmoid({0})"),
    "psi": "write digamma({0})",
    "rem": "write mod({0}, {1}), which has the sign of the divisor",
    "beta": "write exp(lbeta({0}, {1})) of positive numbers",
    **dict.fromkeys(("betaln", "logbeta"), "write lbeta({0}, {1})"),
    "rint": "write round({0})",
    "ceiling": "write ceil({0})",
    "phase": "write angle({0})",
    "clamp": "write clip({0}, {1}, …)",
    "fmax": "write max({0}, {1})",
    "fmin": "write min({0}, {1})",
    "logistic": "write sigmoid({0})",
    "sgn": "write sign({0})",
    **dict.fromkeys(("Re", "ℜ"), "write real({0})"),
    **dict.fromkeys(("Im", "ℑ"), "write imag({0})"),
    "arg": "write angle({0})",
    "conjugate": "write {0}'",
    "heaviside": "write where(0 <= {0}, 1)",
    "sinc": "write where({0} != 0, sin({0}) / {0}, 1)",
    **dict.fromkeys(("D", "derivative", "gradient"), "write grad({0}) for the derivative of a function"),
    **dict.fromkeys(("fsolve", "fzero", "nlsolve", "find_zero", "newton"), "write root((x::R) -> x^3 + x - a)"),
    **dict.fromkeys(
        ("integral", "integrate", "quad", "quadgk", "Integrate"),
        "declare the interval, `@domain Line begin base = R; lower = 0; upper = 1 end`, and write sum(x::Line, f(x))",
    ),
    **dict.fromkeys(("linspace", "arange", "range"), "write a map of an index: (i::N{{10}}) -> i / 9"),
    "odeint": LOOP,
    **dict.fromkeys(("ifelse", "piecewise", "Piecewise", "cases"), _STEP),
    "return": "leave return out: the last line of begin … end is its value",
    "if": _STEP,
    "Sum": "write sum(i, …), with the index alone",
    **dict.fromkeys(("product", "Product"), "write prod(i, …), with the index alone"),
    "Σ": "write sum(i, …), or ∑(i, …)",
    "Π": "write prod(i, …)",
}
"""A remedy for the name of a function that is not of the language."""

CHOICE = "write where(c, a, b) for a where c holds, and b elsewhere"
STATEMENTS = {"if": CHOICE, "elseif": CHOICE, "else": CHOICE, "for": LOOP, "while": LOOP}
"""A remedy for the statements of other languages, which end with `end` in some."""

IMAGINARY = "the imaginary unit is im; an index is bound by a sum or a map, sum(i, x(i))"
"""A remedy for i and j where nothing binds them."""

INDICES_FIRST = "write the indices, then the summand: sum(i, x(i)), sum((i, k::BZ), x(i, k))"
SIGN_OF_A_SUM = r"(Σ_?|∑_?|sum_)\w{1,4}\Z"
"""A sum as it is set in a book, Σ_i or Σᵢ, and as NumPy's users name it, sum_i."""

SIZE = "name the size in a type, x::RV{n}, and write n"

UNIT_MATRIX = "add I to a matrix, or multiply by it, to tell its size; by index it is (i, j) -> I(i, j)"
"""A remedy for the unit matrix where nothing tells its size."""

SESSION = {
    "vdiff": "vdiff is cd.grad",
    "redux": "redux is part of every derivation",
    "eval_all": "eval_all is what is done with definitions that keep= does not name",
    "blaserize": "blaserize is d.matrix_text()",
    "decompose": "decompose is what `combdiff explain` shows",
    "pp": "pp of a gradient is cd.hvp",
    **dict.fromkeys(("get_body", "simplify", "first", "settings", "symmetry_settings", "using", "CombDiff"), ""),
}
"""The words of a session with the paper's own system (Listings 1 to 5), and what does the same here."""

TYPES = {
    "R": "Real real Float Float64 Float32 float float64 double Double number Number scalar Scalar ℝ",
    "C": "Complex complex ComplexF64 complex128 ℂ",
    "RV": "Vector vector vec Vec array Array list",
    "RM": "Matrix matrix mat Mat",
    "CV": "ComplexVector cvec",
    "CM": "ComplexMatrix cmat",
    "Sym": "Symmetric symmetric SymmetricMatrix Symm",
    "Her": "Hermitian hermitian HermitianMatrix Herm",
    "N": "int Int Integer integer Nat index Index ℕ",
    "(N) -> N": "IV NV IntVector intvec",
    "(N, N) -> N": "IM NM IntMatrix",
    "(N, N, N) -> R": "Tensor tensor RT Array3 Tensor3 RT3",
    "(N, N, N) -> C": "CT CT3",
}
"""The types of the language, and what they are called elsewhere."""
_OURS = {word: ours for ours, words in TYPES.items() for word in words.split()}

_NOWHERE = Span(0, 0)
MODULES = frozenset({"np", "numpy", "jnp", "jax", "torch", "math", "scipy", "cp", "tf", "Math"})
_TURNED = frozenset("ᵀᴴᵗ")
_EXPONENTS = frozenset({"T", "H", "t", "TOP", "top", "dagger"})
_SIZES = frozenset({"n", "m", "N", "M", "d", "D", "K", "L"})


_SUBSCRIPTS = {ord("₀") + n: f"_{n}" for n in range(10)}


def remedy_of_function(name: str, arguments: Sequence[Expr]) -> str | None:
    """What to write for a call of a function that people know from elsewhere."""
    row = FUNCTIONS.get(name)
    if re.match(SIGN_OF_A_SUM, name):
        return INDICES_FIRST
    if row is None:
        return None
    defaults = ("A", "B") if "(i, j)" in row or "(i, i)" in row or "(j, i)" in row else ("x", "y")
    given = [_written(e) for e in arguments[:2]] + [""] * 2
    return row.format(*(text or default for text, default in zip(given, defaults, strict=False)))


_OF_INDICES = frozenset({"binomial", "binom", "comb", "nchoosek", "choose", "heaviside", "ln"})
"""Functions that nobody names a tensor by: factorial(i) is no entry, as beta(i) is."""


def remedy_of_index(name: str, arguments: Sequence[Expr]) -> str | None:
    """What to write for a function of an index, which is a number there."""
    return remedy_of_function(name, arguments) if name in _OF_INDICES else None


_OF_MATRICES = {
    "exp": ", expm({}) for the exponential of a matrix",
    "sqrt": ", sqrtm({}) for the root of a matrix",
    "log": ", logdet({}) for the trace of the logarithm of a matrix",
}


def remedy_of_every_entry(name: str, arguments: Sequence[object], slots: int) -> str:
    """What to write where a function of numbers is given a tensor of so many slots.

    >>> remedy_of_every_entry("exp", (Name("A", Span(1, 1)),), 2)
    'write exp.(A) for exp of every entry, exp(A(i, j)) for that of one, expm(A) for the exponential of a matrix'
    """
    texts = [_written(e) for e in arguments]
    remedy = f"write {name}.({', '.join(text or '…' for text in texts)}) for {name} of every entry"
    if len(arguments) > 1:
        return remedy
    if texts[0]:
        remedy += f", {name}({texts[0]}({', '.join('ijklmnop'[:slots])})) for that of one"
    return remedy + _OF_MATRICES.get(name, "").format(texts[0] or "…") * (slots == 2)


def remedy_of_missing_function(name: str, arguments: Sequence[Expr] = ()) -> str:
    """What to do about a function of numbers that the language does not have."""
    if len(arguments) > 1:
        return (
            f"there is no function {name}; of numbers make it a parameter, "
            f"`({name}::({', '.join('R' * len(arguments))}) -> R) -> …`"
        )
    return (
        f"there is no function {name}; make it a parameter, `({name}::RF) -> …`, "
        f"and give {name}= and grad_{name}= when you call"
    )


def remedy_of_type(name: str, sizes: Sequence[str] = ()) -> str | None:
    """The type that another name means; the last of `sizes` may be a number of slots, as in Julia's Array{Float64, 2}.

    >>> remedy_of_type("Array", ["Float64", "2"]), remedy_of_type("Array", ["Float64", "4"])
    ('write RM', 'write (N, N, N, N) -> R')
    """
    ours = _OURS.get(name)
    if ours == "RV" and len(sizes) > 1 and sizes[-1].isdigit():
        slots = ", ".join("N" * min(int(sizes[-1]), 9))
        ours = {"1": "RV", "2": "RM"}.get(sizes[-1], f"({slots}) -> R")
    if ours is None and (power := re.fullmatch(r"([RC])\^?(\d+)", name)):
        return f"write {power[1]}V{{{power[2]}}} for a vector of {power[2]} numbers"
    return ours and f"write {ours}"


def remedy_of_name(name: str, known: Sequence[str]) -> str | None:
    """What a name that nothing defines may mean where no function is called."""
    tensor, _, indices = name.translate(_SUBSCRIPTS).partition("_")
    if indices and tensor in known:
        first = f"; {tensor}(0) is the first one" if indices.isdigit() and len(indices) == 1 else ""
        return f"an entry is written {tensor}({', '.join(indices)}){first}"
    if name[:-1] in known and name[-1] in _TURNED:
        return f"write {name[:-1]}' for the adjoint, transpose({name[:-1]}) for the transpose"
    if name == "I":
        return UNIT_MATRIX
    if name in ("i", "j"):
        return IMAGINARY
    if name == "e":
        return "write exp(x) for a power of Euler's number, e^x; another number is a parameter, `(e::R) -> …`"
    if name.lower() in ("inf", "infinity", "nan", "∞"):
        return "leave out what takes no part by a condition: maximum(j, j != i, x(j)), where(j <= i, x(j))"
    if name.lower() in ("true", "false"):
        return "write 1 or 0 for a number, and nothing for a condition that always holds"
    if not name.isidentifier():
        return "write numbers with digits: 1/2"
    if name in _SIZES:
        return (
            f"for a size, name it in a type, x::RV{{{name}}}, and write {name}; "
            f"for a number, make it a parameter, `({name}::R) -> …`"
        )
    return None


def remedy_of_attribute(name: str, owner: str) -> str:
    """What to write for `A.det()`, where `A` is what stands before the dot."""
    if name in FUNCTIONS:
        return remedy_of_function(name, (Name(owner or "…", _NOWHERE),)) or ""
    return f"write {name}({owner or '…'})"


def is_transpose(exponent: Expr) -> bool:
    """Whether an exponent is the letter for a transpose, x^T.

    >>> is_transpose(Name("T", Span(1, 1)))
    True
    """
    return isinstance(exponent, Name) and exponent.text in _EXPONENTS


def _written(e: object) -> str:
    """The text of a name, a number or an entry; empty for all else."""
    match e:
        case Name(text):
            return text
        case Numeral(value):
            return str(value)
        case Apply(Name(text), args) if all(isinstance(a, Name) for a in args):
            return f"{text}({', '.join(map(_written, args))})"
        case _:
            return ""
