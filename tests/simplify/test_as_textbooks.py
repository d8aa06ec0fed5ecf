"""Gradients that a textbook writes in a line are printed so: no guard, factor or name more than there."""

from __future__ import annotations

import pytest

import combdiff as cd

FORMS = {
    # what the objective divides by needs no guard; what it divides by under a condition, and counts, do
    "(p::RV{n}) -> mean(i, where(p(i) > 0, log(p(i))))": "i -> where(0 < p(i), 1 / p(i)) / n",
    "(c::R) -> (p::RV) -> sum(i, where(p(i) > 0, log(p(i)))) / c": "i -> where(0 < p(i), 1 / p(i)) / c",
    "(c::R) -> (p::RV) -> sum(i, where(p(i) > 0, log(p(i)) / c))": "i -> where(0 < p(i), 1 / c / p(i))",
    "(c::RV) -> (p::RV) -> sum(i, where(p(i) > 0, log(p(i))) / c(i))": "i -> where(0 < p(i), 1 / p(i)) / c(i)",
    "(c::RV) -> (p::RV) -> begin s = sum(i, c(i)); sum(i, where(p(i) > 0, log(p(i)))) / s end": (
        "begin s = sum(i, c(i)) i -> where(0 < p(i), 1 / p(i)) / s end"
    ),
    "(c::RV) -> (p::RV) -> begin s = i -> c(i)^2 + 1; sum(i, where(p(i) > 0, log(p(i))) / s(i)) end": (
        "begin s = i -> c(i)^2 + 1 i -> where(0 < p(i), 1 / p(i)) / s(i) end"
    ),
    "(y::RV) -> (w::R) -> mean(i, 0 < y(i), w * y(i))": (
        "sum(i, y(i) * where(0 < y(i), 1 / sum(i1, where(0 < y(i1), 1))))"
    ),
    # a factor that is 0 where a condition does not hold needs no condition beside it, if the rest is finite
    "(y::RV) -> sum(i, (y(i) * where(y(i) != 0, 1))^2)": "i -> 2 * y(i)",
    "(y::RV) -> (x::RV) -> sum(i, where(0 < y(i), max(0, y(i)) * x(i)^2))": "i -> 2 * x(i) * max(0, y(i))",
    "(y::RV) -> (x::RV) -> sum(i, where(0 < y(i), min(0, y(i)) * x(i)^2))": (
        "i -> 2 * x(i) * min(0, y(i)) * where(0 < y(i), 1)"
    ),
    "(y::RV, z::RV) -> (x::RV) -> sum(i, where(0 < z(i), max(0, y(i)) * x(i)^2))": (
        "i -> 2 * x(i) * max(0, y(i)) * where(0 < z(i), 1)"
    ),
    "(a::RV) -> (x::RV) -> sum((i, j), where(i != j, a(j) * sin(a(i) - a(j))) * x(i)^2)": (
        "i -> 2 * x(i) * sum(j, a(j) * sin(a(i) - a(j)))"
    ),
    "(a::RV) -> (x::RV) -> sum((i, j), where(i != j, a(j) * cos(a(i) - a(j))) * x(i)^2)": (
        "i -> 2 * x(i) * sum(j, where(i != j, a(j) * cos(a(i) - a(j))))"
    ),
    "(a::RV) -> (x::RV) -> sum((i, j), where(i != j, sin(a(i) - a(j)) / a(j)) * x(i)^2)": (
        "i -> 2 * x(i) * sum(j, sin(a(i) - a(j)) * where(i != j, 1 / a(j)))"
    ),
    "(x::RV) -> sum((p, q), p < q, (x(p) - x(q))^2)": "p -> 2 * sum(q, x(p) - x(q))",
    "(x::RV) -> sum(i, where(0 < x(i), x(i))^3)": "i -> 3 * where(0 < x(i), x(i)^2)",
    "(x::RM) -> begin r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2)); f = (i, j) -> 1 / r(i, j); "
    "sum((i, j), where(i != j, f(i, j)^3)) end": (
        "begin r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2)) "
        "(i, c) -> -6 * sum(j, (x(i, c) - x(j, c)) * where(i != j, 1 / r(i, j)^5)) end"
    ),
    # the entropy of a fermion, and shares of a whole that meet as powers
    "(x::RV) -> begin f = i -> 1 / (1 + exp(x(i))); sum(i, f(i) * log(f(i)) + (1 - f(i)) * log(1 - f(i))) end": (
        "begin f = i -> sigmoid(-x(i)) i -> x(i) * f(i) * sigmoid(x(i)) end"
    ),
    "(x::RV) -> sum(i, sigmoid(x(i)) * log(sigmoid(x(i))) + sigmoid(-x(i)) * log(sigmoid(-x(i))))": (
        "i -> x(i) * sigmoid(x(i)) * sigmoid(-x(i))"
    ),
    "(a::RV) -> (x::RV) -> sum(i, x(i) * (a(i) * sigmoid(a(i)) - a(i) * sigmoid(a(i))^2))": (
        "i -> a(i) * sigmoid(a(i)) * sigmoid(-a(i))"
    ),
    "(a::RV, b::RV) -> (x::RV) -> sum(i, x(i) * (b(i) * softplus(-a(i)) - b(i) * softplus(a(i)) + b(i)))": (
        "i -> b(i) * (1 - a(i))"
    ),
    "(x::R, y::R) -> max(x, y) - min(x, y)": "(sign(x - y), -sign(x - y))",
    # sums in terms are multiplied out where some of it cancels, and cancel with their inverses term by term
    "(x::R, y::R) -> (max(x, y) - min(y, x))^2 + 2 * max(x, y) - min(x, y)": (
        "(2 * x + 1/2 + 3/2 * sign(x - y) - 2 * y, 2 * y + 1/2 + 3/2 * sign(y - x) - 2 * x)"
    ),
    "(y::RV) -> (m::RV, r::R) -> sum(i, r * log(r / (r + m(i))) + y(i) * log(m(i) / (r + m(i))))": (
        "(i -> r * (y(i) / m(i) - 1) / (r + m(i)), sum(i, log(r / (r + m(i)))) + n - sum(i, (y(i) + r) / (r + m(i))))"
    ),
    # σ(t) and σ(-t) are 1 together: y - σ(Xw) in every spelling of the logistic loss of labels 0 and 1
    **dict.fromkeys(
        (
            "(X::RM, y::RV) -> (w::RV) -> begin p = i -> sigmoid(sum(j, X(i, j) * w(j))); "
            "-sum(i, y(i) * log(p(i)) + (1 - y(i)) * log(1 - p(i))) end",
            "(X::RM, y::RV) -> (w::RV) -> begin p = 1 ./ (1 .+ exp.(-X * w)); "
            "-(y' * log.(p)) - (1 .- y)' * log.(1 .- p) end",
            "(X::RM, y::RV) -> (w::RV) -> sum(i, softplus(sum(j, X(i, j) * w(j))) - y(i) * sum(j, X(i, j) * w(j)))",
        ),
        "j -> sum(i, X(i, j) * (sigmoid(sum(j1, X(i, j1) * w(j1))) - y(i)))",
    ),
    "(Y::RM{p, q}) -> (θ::RV{p}, b::RV{q}) -> begin η = (i, j) -> θ(i) - b(j); "
    "sum((i, j), Y(i, j) * log(sigmoid(η(i, j))) + (1 - Y(i, j)) * log(1 - sigmoid(η(i, j)))) end": (
        "begin η = (i, j) -> θ(i) - b(j) η_bar = (i, j) -> Y(i, j) - sigmoid(η(i, j)) "
        "(i -> sum(j, η_bar(i, j)), j -> -sum(i, η_bar(i, j))) end"
    ),
    "(a::R) -> (x::R) -> x * normcdf(a) + x * normcdf(-a)": "1",
    # what a sum is divided by goes, if it stands beside it, also where a definition was recognised
    "(X::RM, y::RV, e::RV, r::R) -> (b::RV) -> begin m = e .* exp.(X * b); "
    "-sum(r * log.(r ./ (r .+ m)) + y .* log.(m ./ (r .+ m))) end": (
        "begin m = i -> e(i) * exp(sum(j, X(i, j) * b(j))) j -> r * sum(i, X(i, j) * (m(i) - y(i)) / (r + m(i))) end"
    ),
    "(A::RV{n}) -> (ψ::CV{n}) -> sum(i, i + 1 < n, abs2(ψ(i + 1) - exp(im * A(i)) * ψ(i)))": (
        "i -> 2 * where(1 <= i, ψ(i) - ψ(i - 1) * exp(im * A(i - 1))) - "
        "2 * where(i + 2 <= n, ψ(i + 1) * exp(-im * A(i)) - ψ(i))"
    ),
    # a diagonal matrix is symmetric
    "(S::Sym{p}) -> (L::RM{p, q}, ψ::RV{p}) -> begin V = L * L' + Diagonal(ψ); logdet(V) + tr(V \\ S) end": (
        "begin V = (i, k) -> sum(j, L(i, j) * L(k, j)) + delta(i, k, ψ(i)) "
        "V_bar = (i, j) -> inv(V)(i, j) - sum((k, k1), S(k, k1) * inv(V)(i, k1) * inv(V)(j, k)) "
        "((i, j) -> 2 * sum(k, V_bar(i, k) * L(k, j)), i -> V_bar(i, i)) end"
    ),
    "(A::Sym{p}) -> (ψ::RV{p}) -> begin B = A + Diagonal(ψ); sum((i, j, k), B(i, j) * B(j, k) * B(k, i)) end": (
        "begin B = (i, j) -> A(i, j) + delta(i, j, ψ(i)) i -> 3 * sum(k, B(i, k)^2) end"
    ),
    # of a Hermitian matrix the determinant is real, and the inverse needs no conjugate
    "(H::CM{r, t}) -> real(log(det(H * H' + I)))": (
        "(i, j) -> 2 * sum(k, H(k, j) * inv((i1, k1) -> sum(j1, H(i1, j1) * H(k1, j1)') + delta(i1, k1, 1))(i, k))"
    ),
    "(H::CM{r, t}) -> begin Z = H * H' + I; D = det(Z); real(log(D)) + abs2(D) end": (
        "begin Z = (i, k) -> sum(j, H(i, j) * H(k, j)') + delta(i, k, 1) D = det(Z) "
        "(i, j) -> 2 * sum(k, H(k, j) * (inv(Z)(i, k) + 2 * D * adjugate(Z)(i, k))) end"
    ),
    "(A::RM{n, n}) -> begin E = (i, j) -> (A(i, j) - delta(i, j, 1)) / 2; sum((i, j), E(i, j)^4) end": (
        "begin E = (i, j) -> 1/2 * (A(i, j) - delta(i, j, 1)) (i, j) -> 2 * E(i, j)^3 end"
    ),
    # what is real has no imaginary part
    "(ψ::CV{n}) -> (A::RV{n}) -> sum(i, i + 1 < n, abs2(ψ(i + 1) - exp(im * A(i)) * ψ(i)))": (
        "i -> -2 * imag(ψ(i)' * where(i + 2 <= n, ψ(i + 1) * exp(-im * A(i))))"
    ),
    "(a::CV) -> (x::RV) -> sum(i, real(a(i)' * (exp(im * x(i)) * a(i) - a(i))))": (
        "i -> abs2(a(i)) * imag(exp(-im * x(i)))"
    ),
    # terms stand in the order in which the program writes them, everywhere
    "(V::R, S::RV, v::RV) -> (K::R) -> sum(i, (v(i) - V * S(i) / (K + S(i)))^2)": (
        "2 * V * sum(i, S(i) * (v(i) - V * S(i) / (K + S(i))) / (K + S(i))^2)"
    ),
    "(e::R) -> (x::RV{n}) -> sum(i, i + 1 < n, sqrt((x(i + 1) - x(i))^2 + e))": (
        "begin v = (i::N{n - 1}) -> (x(i + 1) - x(i)) / sqrt((x(i + 1) - x(i))^2 + e) "
        "(i::N{n}) -> where(1 <= i, v(i - 1)) - where(i + 2 <= n, v(i)) end"
    ),
    "(q::R, y::RV) -> (f::RV) -> mean(i, max(q * (y(i) - f(i)), (q - 1) * (y(i) - f(i))))": (
        "i -> (1/2 - q - 1/2 * sign(y(i) - f(i))) / n"
    ),
    "(a::RV, b::RV) -> (x::RV) -> sum(i, (a(i) - b(i)) * (a(i) + b(i)) * x(i) + x(i))": (
        "i -> (a(i) - b(i)) * (a(i) + b(i)) + 1"
    ),
    # fractions in a divisor go, if what they are divided by stands beside it
    "(x::RV{n}, v::R, s::R) -> (m::R) -> sum(i, (v + 1) / 2 * log(1 + (x(i) - m)^2 / (v * s^2)))": (
        "-(v + 1) * sum(i, (x(i) - m) / (v * s^2 + (x(i) - m)^2))"
    ),
    "(a::R, b::R) -> (x::R) -> log(1 + x / a + x^2 / b)": "(1 / a + 2 * x / b) / (1 + x / a + x^2 / b)",
    # cases of one sum
    "(d::R, y::RV) -> (m::R) -> sum(i, where(abs(y(i) - m) <= d, (y(i) - m)^2 / 2, d * (abs(y(i) - m) - d / 2)))": (
        "-sum(i, where(abs(y(i) - m) <= d, y(i) - m, d * sign(y(i) - m)))"
    ),
    "(c::RV, d::RV) -> (m::R) -> m * (sum(i, where(c(i) < 1, c(i))) + sum(i, where(1 <= d(i), d(i))))": (
        "sum(i, where(c(i) < 1, c(i))) + sum(i, where(1 <= d(i), d(i)))"
    ),
    # a condition of some indices tells that there are such, and a factor what holds beside it, also among others
    "(y::(N{n}) -> N{k}) -> (S::RM{n, k}) -> sum((i, c), c != y(i), max(0, 1 + S(i, c) - S(i, y(i))))": (
        "(i, c) -> where(c != y(i), 1/2 + 1/2 * sign(1 + S(i, c) - S(i, y(i))), "
        "-1/2 * sum(c1, (1 + sign(1 + S(i, c1) - S(i, y(i)))) * where(c1 != y(i), 1)))"
    ),
    "(y::(N{n}) -> N{k}) -> (S::RM{n, k}) -> -mean(i, S(i, y(i)))": "(i, d::N{k}) -> -delta(y(i), d, 1) / n",
    # of two signs one is 1
    "(x::RV) -> sum(clip.(x, 0, 1))": "i -> 1/2 * (sign(x(i)) + sign(1 - x(i)))",
    "(w::RV) -> (x::RV) -> sum(i, w(i) * clip(2 * x(i), -1, 3))": (
        "i -> w(i) * (sign(1 + 2 * x(i)) + sign(3 - 2 * x(i)))"
    ),
    "(a::R, b::R) -> (x::R) -> clip(x, a, b)": "1/4 * (1 + sign(x - a)) * (1 + sign(b - x))",
    # the shares of a softmax are 1 together, and a name for one is no shorter
    "(x::RV) -> sum(softmax(x)) * x(0)": "(i::N{n}) -> delta(0, i, 1)",
    "(w::RV) -> (x::RV) -> sum(i, w(i) * softmax(x)(i))": (
        "i -> softmax(x)(i) * (w(i) - sum(i1, w(i1) * softmax(x)(i1)))"
    ),
    "(x::RV) -> logsumexp(x) + softmax(x)(0)": "i -> softmax(x)(i) * (1 + delta(0, i, 1) - softmax(x)(0))",
    "(y::RV) -> (x::RV) -> -sum(i, y(i) * log(softmax(x)(i)))": "i -> softmax(x)(i) * sum(i1, y(i1)) - y(i)",
    "(y::RV) -> (x::RV) -> sum(i, 0 < y(i), softmax(x)(i))": (
        "i -> softmax(x)(i) * (where(0 < y(i), 1) - sum(i1, softmax(x)(i1) * where(0 < y(i1), 1)))"
    ),
    "(y::RV) -> (z::RV) -> sum(i, y(i) * log(1/2 * (1 + erf(z(i)))) + (1 - y(i)) * log(1 - 1/2 * (1 + erf(z(i)))))": (
        "(y(i) * exp(-z(i)^2 - lognormcdf(z(i) * sqrt(2))) "
        "+ exp(-z(i)^2 - lognormcdf(-z(i) * sqrt(2))) * (y(i) - 1)) / sqrt(pi)"
    ),
    # generalised least squares: the residual of the fit, and not four products of its parts
    "(X::RM{n, p}, y::RV{n}) -> (W::Sym{n}) -> y' * (W - W * X * inv(X' * W * X) * X' * W) * y": (
        "begin v = j -> y(j) - sum((k, i, j1, j2), X(j, k) * X(i, j1) * y(j2) * W(j2, i) * "
        "inv((j3, i1) -> sum((i2, k1), X(i2, j3) * X(k1, i1) * W(i2, k1)))(k, j1)) (i, k) -> v(i) * v(k) end"
    ),
}


@pytest.mark.parametrize("program", FORMS)
def test_the_gradient_is_that_of_a_textbook(program: str) -> None:
    text = str(cd.grad(program))
    assert " ".join(text.split()).replace("( ", "(").replace(" )", ")").endswith("-> " + FORMS[program]), text


@pytest.mark.slow
@pytest.mark.parametrize("program", FORMS)
def test_it_is_right(program: str) -> None:
    assert cd.grad(program).check()


def test_a_condition_of_indices_tells_that_there_are_such() -> None:
    text = str(
        cd.grad(
            "(P::RM{n, n}) -> (y::RM{n, d}) -> begin w = (i, j) -> 1 / (1 + sum(c, (y(i, c) - y(j, c))^2))\n"
            "Z = sum((i, j), i != j, w(i, j)); -sum((i, j), i != j, P(i, j) * log(w(i, j) / Z)) end"
        )
    )
    assert "1 <= sum" not in text and "where(i1 != j1, P(i1, j1) / Z)" in text


@pytest.mark.parametrize("alias", ["", "F = j -> E(j); ", "F = j -> root((x::R) -> x - e(j) * sin(x) - M(j)); "])
def test_a_root_has_the_name_of_its_definition(alias: str) -> None:
    value = "sum(i, sin(E(i)) * F(i))" if alias else "sum(i, sin(E(i)))"
    d = cd.grad(f"(M::RV) -> (e::RV) -> begin E = j -> root((x::R) -> x - e(j) * sin(x) - M(j)); {alias}{value} end")
    text = str(d)
    assert text.count("root(") == 1 and "E = root(" in text and "F" not in text and " = E" not in text, text
    assert d.check()


KERNEL = "(x::RM, y::RM) -> sum((i, j), exp(-sum(c, (x(i, c) - y(j, c))^2)))"


def test_what_differentiation_names_has_no_minus_sign() -> None:
    text = " ".join(str(cd.grad(KERNEL)).split())
    assert "Z = (i, j) -> exp(-sum(" in text, text
    assert "-2 * sum(j, Z(i, j) * (x(i, c) - y(j, c)))" in text and " 2 * sum(i, Z(i, j)" in text, text
    assert cd.grad(KERNEL).check()


def test_a_number_in_front_goes_into_a_sum_that_it_makes_shorter() -> None:
    """As 0.0084 does, which makes 0.185 and 1/3 of 9.25 / 0.42 and 1 / 0.0252."""
    d = cd.simplified("(x::R, y::R) -> 0.0084 * x * (9.25 * y / 0.42 + x / 0.0252) + 3 * x^2 * (y / 3 - x / 6)")
    assert str(d) == "(x::R, y::R) -> x * (37/200 * y + 1/3 * x) + x^2 * (y - 1/2 * x)"


@pytest.mark.parametrize(
    ("written", "shown"),
    [("9.81", "9.81"), ("19.62", "19.62"), ("1.5", "3/2"), ("0.1", "1/10"), ("2.5e-2", "1/40"), ("12.8", "64/5")],
)
def test_a_decimal_number_above_one_stays_decimal(written: str, shown: str) -> None:
    assert str(cd.simplified(f"(x::R) -> {written} * sin(x)")) == f"(x::R) -> {shown} * sin(x)"
