"""A definition for the first n of n + 1 entries is read where it has an entry, and written out where it has none."""

from __future__ import annotations

import pytest

import combdiff as cd

HEAD = "(A::RM{n + 1, p}, c::RV{n + 1}) -> (u::RV{n + 1}) -> begin v = (i::N{n}) -> VALUE; sum(i, v(i)^2) + USE end"
VALUES = {
    # read again where like terms merge, by the graph of forms, and as a part of a product
    "exp(u(i))": "exp(u(PLACE))",
    "abs(u(i))": "abs(u(PLACE))",
    "u(i) * sqrt(u(i)^2 + 1)": "(u(PLACE) * sqrt(u(PLACE)^2 + 1))",
    "u(i) * sum(k, A(i, k)^2)": "u(PLACE) * sum(k, A(PLACE, k)^2)",
}
USES = {
    "sum(i::N{n}, IT * cos(u(i)))": "i + 1",
    "sum(i::N{n}, v(i)^2 * IT)": "i + 1",
    "sum((i::N{n + 1}, j::N{n}), IT * c(i) * v(j))": "i",
}


@pytest.mark.parametrize("derivative", [cd.grad, cd.jvp])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", VALUES)
def test_a_definition_is_not_read_beyond_its_range(value: str, use: str, derivative: type[cd.grad]) -> None:
    it = VALUES[value].replace("PLACE", USES[use])
    d = derivative(HEAD.replace("VALUE", value).replace("USE", use.replace("IT", it)))
    assert d.compile().source
    assert d.check()


def test_a_definition_is_read_where_it_has_an_entry() -> None:
    text = "(u::RV{n + 1}) -> begin v = (i::N{n}) -> exp(u(i)); sum(i, v(i)^2) * sum(i::N{n - 1}, exp(u(i + 1))) end"
    found = str(cd.grad(text))
    assert "v(i1 + 1)" in found  # of n - 1 values i1
    assert found.count("exp(") == 1  # and v(i) where i < n


@pytest.mark.parametrize("value", ["exp(u(i))", "u(i) * sqrt(u(i)^2 + 1)"])
def test_an_index_of_one_value_less_may_be_followed(value: str) -> None:
    head = "(w::RV{n}, u::RV{n + 1}) -> (x::RV{n - 1}) -> begin v = (i::N{n}) -> VALUE; "
    use = "sum(i, v(i)^2 * w(i)) * sum(i, x(i)^2 * NEXT) end".replace("NEXT", value.replace("u(i)", "u(i + 1)"))
    assert "v(i + 1) * sum(i1, w(i1) * v(i1)^2)" in str(cd.grad(head.replace("VALUE", value) + use))


def test_code_for_an_equation_reads_no_value_beyond_its_range() -> None:
    # diffusion between n cells with n + 1 conductances
    d = cd.jvp(
        """(f::RV{n}) -> (u::RV{n + 1}) -> begin
          T = inverse((T::RV{n}) -> (i::N{n}) ->
            exp(u(i)) * (T(i) - where(1 <= i, T(i - 1))) + exp(u(i + 1)) * (T(i) - where(i < n - 1, T(i + 1))))(f)
          sum(i, T(i)^2)
        end"""
    )
    assert d.compile().source
    assert d.check()
