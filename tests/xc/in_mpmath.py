"""The functionals with fifty digits: energies per volume of both spins, from their papers, apart from combdiff.

Each takes ρ↑, ρ↓, σ↑↑, σ↑↓, σ↓↓, τ↑, τ↓ as numbers of mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import asinh, atan, diff, exp, log, mp, mpf, pi, sqrt  # type: ignore[import-untyped]

mp.dps = 50
Real = Any
Energy = Callable[..., Real]
q = mpf


def power(x: Real, numerator: int, denominator: int) -> Real:
    """x to a fractional power."""
    return x ** (mpf(numerator) / denominator)


def radius(n: Real) -> Real:
    """The Wigner–Seitz radius."""
    return power(3 / (4 * pi * n), 1, 3)


def of_spins(spin: Energy) -> Energy:
    """An exchange energy of both spins from the one of a spin alone."""
    return lambda u, d, uu=0, _=0, dd=0, s=0, t=0: spin(u, uu, s) + spin(d, dd, t)


def uniform(n: Real) -> Real:
    """Exchange of one spin of the uniform gas: half of that of both at twice the density."""
    return -q(3) / 8 * power(3 / pi, 1, 3) * power(2 * n, 4, 3)


def reduced(n: Real, g: Real) -> Real:
    """s² at twice the density of a spin."""
    return 4 * g / (4 * power(3 * pi**2, 2, 3) * power(2 * n, 8, 3))


def pbe_x(n: Real, g: Real, _: Real) -> Real:
    kappa = q("0.804")
    mu = q("0.06672455060314922") * pi**2 / 3
    return uniform(n) * (1 + kappa - kappa**2 / (kappa + mu * reduced(n, g)))


def b88(n: Real, g: Real, _: Real) -> Real:
    beta = q("0.0042")
    x = sqrt(g) / power(n, 4, 3)
    return uniform(n) - beta * power(n, 4, 3) * x**2 / (1 + 6 * beta * x * asinh(x))


def tpss_x(n: Real, g: Real, t: Real) -> Real:
    p = reduced(n, g)
    z = g / (8 * n * t)
    kappa, e, mu = q("0.804"), q("1.537"), q("0.21951")
    alpha = (t - g / (8 * n)) / (q(3) / 10 * power(6 * pi**2, 2, 3) * power(n, 5, 3))
    qb = q(9) / 20 * (alpha - 1) / sqrt(1 + q("0.4") * alpha * (alpha - 1)) + 2 * p / 3
    upper = (q(10) / 81 + q("1.59096") * z**2 / (1 + z**2) ** 2) * p + q(146) / 2025 * qb**2
    upper -= q(73) / 405 * qb * sqrt((3 * z / 5) ** 2 / 2 + p**2 / 2)
    upper += (q(10) / 81) ** 2 / kappa * p**2 + 2 * sqrt(e) * q(10) / 81 * (3 * z / 5) ** 2 + e * mu * p**3
    x = upper / (1 + sqrt(e) * p) ** 2
    return uniform(n) * (1 + kappa - kappa**2 / (kappa + x))


def switched(a: Real, c: list[str], below: str, above: str, depth: str) -> Real:
    """The switch of rSCAN between its two limits; `c` are the coefficients of its polynomial."""
    if a <= 0:
        return exp(-q(below) * a / (1 - a))
    if a > q("2.5"):
        return -q(depth) * exp(q(above) / (1 - a))
    return sum(q(n) * a**k for k, n in enumerate(c))


C_X = ["1", "-0.667", "-0.4445555", "-0.663086601049", "1.451297044490", "-0.887998041597"]
C_X += ["0.234528941479", "-0.023185843322"]
C_C = ["1", "-0.64", "-0.4352", "-1.535685604549", "3.061560252175", "-1.915710236206"]
C_C += ["0.516884468372", "-0.051848879792"]


def slope(c: list[str]) -> Real:
    """The derivative of the polynomial at 1."""
    return sum(k * q(n) for k, n in enumerate(c))


def r2scan_x(n: Real, g: Real, t: Real) -> Real:
    eta, h0, k1 = q("0.001"), q("1.174"), q("0.065")
    p = reduced(n, g)
    gradient = -slope(C_X) * (1 - h0) * (q(20) / 27 + 5 * eta / 3)
    x = (gradient * exp(-(p**2) / q("0.361") ** 4) + q(10) / 81) * p
    h1 = 1 + k1 - k1 / (1 + x / k1)
    weizsaecker = g / (8 * n)
    alpha = (t - weizsaecker) / (q(3) / 10 * power(6 * pi**2, 2, 3) * power(n, 5, 3) + eta * weizsaecker)
    f = switched(alpha, C_X, "0.667", "0.8", "1.24")
    return uniform(n) * (h1 + f * (h0 - h1)) * (1 - exp(-q("4.9479") / sqrt(sqrt(p))))


def weight(z: Real) -> Real:
    """f(ζ), which is 0 without spin polarisation and 1 with all of it."""
    return (power(1 + z, 4, 3) + power(1 - z, 4, 3) - 2) / (power(q(2), 4, 3) - 2)


def vwn5(u: Real, d: Real, *_: Real) -> Real:
    n, z = u + d, (u - d) / (u + d)
    x = sqrt(radius(n))

    def fit(a: Real, b: str, c: str, x0: str) -> Real:
        b_, c_, y = q(b), q(c), q(x0)
        root = sqrt(4 * c_ - b_**2)
        angle = atan(root / (2 * x + b_))
        whole, own = x**2 + b_ * x + c_, y**2 + b_ * y + c_
        inner = log((x - y) ** 2 / whole) + 2 * (b_ + 2 * y) / root * angle
        return a * (log(x**2 / whole) + 2 * b_ / root * angle - b_ * y / own * inner)

    para = fit(q("0.0310907"), "3.72744", "12.9352", "-0.10498")
    ferro = fit(q("0.01554535"), "7.06042", "18.0578", "-0.325")
    stiff = fit(-1 / (6 * pi**2), "1.13107", "13.0045", "-0.0047584")
    curvature = 4 / (9 * (power(q(2), 1, 3) - 1))
    return n * (para + stiff * weight(z) / curvature * (1 - z**4) + (ferro - para) * weight(z) * z**4)


FITS = {
    "para": ["0.21370", "7.5957", "3.5876", "1.6382", "0.49294"],
    "ferro": ["0.20548", "14.1189", "6.1977", "3.3662", "0.62517"],
    "stiff": ["0.11125", "10.357", "3.6231", "0.88026", "0.49671"],
}


def uniform_correlation(rs: Real, z: Real, exact: bool = True) -> Real:
    """Correlation per particle by Perdew and Wang, with the exact curvature or the rounded constants of their paper."""
    amounts = ["0.0310907", "0.01554535", "0.0168869"] if exact else ["0.031091", "0.015545", "0.016887"]
    curvature = 4 / (9 * (power(q(2), 1, 3) - 1)) if exact else q("1.709921")
    g = []
    for a, numbers in zip(map(mpf, amounts), FITS.values(), strict=True):
        a1, *b = map(mpf, numbers)
        lower = 2 * a * sum(bk * rs ** (mpf(k + 1) / 2) for k, bk in enumerate(b))
        g.append(-2 * a * (1 + a1 * rs) * log(1 + 1 / lower))
    return g[0] - g[2] * weight(z) / curvature * (1 - z**4) + (g[1] - g[0]) * weight(z) * z**4


def pw92(u: Real, d: Real, *_: Real) -> Real:
    return (u + d) * uniform_correlation(radius(u + d), (u - d) / (u + d), exact=False)


BETA = q("0.06672455060314922")
GAMMA = (1 - log(2)) / pi**2


def pbe_per_particle(u: Real, d: Real, g: Real) -> Real:
    n, z = u + d, (u - d) / (u + d)
    phi = (power(1 + z, 2, 3) + power(1 - z, 2, 3)) / 2
    e = uniform_correlation(radius(n), z)
    wave = sqrt(4 * power(3 * pi**2 * n, 1, 3) / pi)
    t2 = g / (2 * phi * wave * n) ** 2
    a = BETA / GAMMA / (exp(-e / (GAMMA * phi**3)) - 1)
    ratio = (1 + a * t2) / (1 + a * t2 + (a * t2) ** 2)
    return e + GAMMA * phi**3 * log(1 + BETA / GAMMA * t2 * ratio)


def pbe_c(u: Real, d: Real, uu: Real, ud: Real, dd: Real, *_: Real) -> Real:
    return (u + d) * pbe_per_particle(u, d, uu + 2 * ud + dd)


def lyp(u: Real, d: Real, uu: Real, ud: Real, dd: Real, *_: Real) -> Real:
    a, b, c, e = q("0.04918"), q("0.132"), q("0.2533"), q("0.349")
    n, g = u + d, uu + 2 * ud + dd
    r = power(n, -1, 3)
    omega = exp(-c * r) / (1 + e * r) * power(n, -11, 3)
    delta = c * r + e * r / (1 + e * r)
    fermi = q(3) / 10 * power(3 * pi**2, 2, 3)
    inner = power(q(2), 11, 3) * fermi * (power(u, 8, 3) + power(d, 8, 3)) + (q(47) / 18 - 7 * delta / 18) * g
    inner -= (q(5) / 2 - delta / 18) * (uu + dd) + (delta - 11) / 9 * (u * uu + d * dd) / n
    rest = -q(2) / 3 * n**2 * g + (q(2) / 3 * n**2 - u**2) * dd + (q(2) / 3 * n**2 - d**2) * uu
    return -4 * a / (1 + e * r) * u * d / n - a * b * omega * (u * d * inner + rest)


def tpss_c(u: Real, d: Real, uu: Real, ud: Real, dd: Real, s: Real, t: Real) -> Real:
    n, g = u + d, uu + 2 * ud + dd
    z, ratio = (u - d) / n, g / (8 * n * (s + t))
    # |∇ζ|² of ζ = (ρ↑ − ρ↓)/ρ
    change = 4 * (d**2 * uu - 2 * u * d * ud + u**2 * dd) / n**4
    xi2 = change / (4 * power(3 * pi**2 * n, 2, 3))
    c0 = q("0.53") + q("0.87") * z**2 + q("0.50") * z**4 + q("2.26") * z**6
    c = c0 / (1 + xi2 * (power(1 + z, -4, 3) + power(1 - z, -4, 3)) / 2) ** 4
    e = pbe_per_particle(u, d, g)
    own = u / n * max(e, pbe_per_particle(u, mpf(0), uu)) + d / n * max(e, pbe_per_particle(d, mpf(0), dd))
    revised = e * (1 + c * ratio**2) - (1 + c) * ratio**2 * own
    return n * revised * (1 + q("2.8") * revised * ratio**3)


def r2scan_c(u: Real, d: Real, uu: Real, ud: Real, dd: Real, s: Real, t: Real) -> Real:
    n, g, eta, b1 = u + d, uu + 2 * ud + dd, q("0.001"), q("0.0285764")
    z, rs, p = (u - d) / n, radius(n), g / (4 * power(3 * pi**2, 2, 3) * power(n, 8, 3))
    phi, ds = ((power(1 + z, k, 3) + power(1 - z, k, 3)) / 2 for k in (2, 5))
    large = (1 - q("2.363") * (power(q(2), 1, 3) - 1) * weight(z)) * (1 - z**12)

    def single(r: Real) -> Real:
        return -b1 / (1 + q("0.0889") * sqrt(r) + q("0.125541") * r)

    e, e0 = uniform_correlation(rs, z), single(rs)
    change = 20 * rs * (large * diff(single, rs) - diff(lambda r: uniform_correlation(r, z), rs))
    change -= 45 * eta * (large * e0 - e)
    w1 = exp(-e / (GAMMA * phi**3)) - 1
    beta = q("0.066724550603149220") * (1 + q("0.1") * rs) / (1 + q("0.1778") * rs)
    t2 = g * pi / (16 * phi**2 * power(3 * pi**2 * n, 1, 3) * n**2)
    y = beta * t2 / (GAMMA * w1)
    dy = slope(C_C) / (27 * GAMMA * ds * phi**3 * w1) * change * p * exp(-(p**2) / q("0.361") ** 4)
    e1 = e + GAMMA * phi**3 * log(1 + w1 * (1 - power(1 + 4 * (y - dy), -1, 4)))
    w0 = exp(-e0 / b1) - 1
    limit = e0 + b1 * log(1 + w0 * (1 - power(1 + 4 * q("0.12802585262625815") * p, -1, 4)))
    weizsaecker = g / (8 * n)
    alpha = (s + t - weizsaecker) / (q(3) / 10 * power(3 * pi**2, 2, 3) * power(n, 5, 3) * ds + eta * weizsaecker)
    return n * (e1 + switched(alpha, C_C, "0.64", "1.5", "0.7") * (limit * large - e1))


ENERGIES: dict[str, Energy] = {
    "slater": of_spins(lambda n, g, t: uniform(n)),
    "vwn5": vwn5,
    "pw92": pw92,
    "pbe_x": of_spins(pbe_x),
    "pbe_c": pbe_c,
    "b88": of_spins(b88),
    "lyp": lyp,
    "tpss_x": of_spins(tpss_x),
    "tpss_c": tpss_c,
    "r2scan_x": of_spins(r2scan_x),
    "r2scan_c": r2scan_c,
}


def unpolarised(energy: Energy) -> Energy:
    """An energy of both spins as one of ρ, σ, τ, shared equally between them."""
    return lambda n, g, t: energy(n / 2, n / 2, g / 4, g / 4, g / 4, t / 2, t / 2)
