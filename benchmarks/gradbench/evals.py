"""The table of evals: for each function that an eval asks for, its program, its derivative and its conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import combdiff as cd
from benchmarks.gradbench import bundles
from benchmarks.gradbench.tool import Arguments, Function, Json, floats, listed


def number(given: Json) -> Arguments:
    return {"x": floats(given)}


def vector(given: Json) -> Arguments:
    return {"x": floats(given["x"])}


def polynomial(given: Json) -> Arguments:
    return vector(given) | {"n": given["n"]}


def matrix(given: Json) -> Arguments:
    return {"A": floats(given["A"]).reshape(given["ell"], given["ell"])}


def clusters(given: Json) -> Arguments:
    return {name: floats(given[name]) for name in ("points", "centroids")}


def mixture(given: Json) -> Arguments:
    """The entries below the diagonal come column by column."""
    d, k = given["d"], given["k"]
    col, row = np.triu_indices(d, 1)
    at = np.zeros((d, d), int)
    at[row, col] = np.arange(len(row))
    arrays = {name: floats(given[name]) for name in ("x", "m", "gamma", "alpha", "mu", "q")}
    return arrays | {"l": floats(given["l"]).reshape(k, len(row)), "at": at}


def runge_kutta(given: Json) -> Arguments:
    return {"x": floats(given["x"]), "s": given["s"]}


def last_of_runge_kutta(given: Json) -> Arguments:
    """The gradient of the last entry is the pullback of a cotangent that is 1 there."""
    last = np.zeros(len(given["x"]))
    last[-1] = 1
    return runge_kutta(given) | {"k": last}


def network(given: Json) -> Arguments:
    """Rows take turns: weights and biases of a layer, hidden states and cells."""
    arrays = {name: floats(given[name]) for name in ("main_params", "extra_params", "state", "sequence")}
    w, v, h0, c0 = (arrays[name][n::2] for name in ("main_params", "state") for n in (0, 1))
    w, v = (a.reshape(len(a), 4, -1) for a in (w, v))
    return {"h0": h0, "c0": c0, "x": arrays["sequence"], "w": w, "v": v, "e": arrays["extra_params"]}


def layer_by_layer(result: Any) -> Json:
    """Weights and biases of a layer, then those of the next, and what is left."""
    w, v, e = map(np.asarray, result)
    return listed(np.concatenate([np.stack([w, v], axis=1).ravel(), e.ravel()]))


def hand(given: Json) -> Arguments:
    """Points lie in triangles, or without any `us` at vertices; a root is its own parent."""
    model = given["data"]["model"]
    parent, vertices = np.array(model["parents"]), np.array(given["data"]["correspondences"])
    u = floats(given["us"]).reshape(len(vertices), -1)
    return {
        "parent": np.where(parent < 0, np.arange(len(parent)), parent),
        "base": floats(model["base_relatives"]),
        "rest": floats(model["inverse_base_absolutes"]),
        "skin": floats(model["base_positions"]),
        "weight": floats(model["weights"]),
        "corner": np.array(model["triangles"])[vertices] if u.size else vertices[:, None],
        "point": floats(given["data"]["points"]),
        "mirror": -1.0 if model["is_mirrored"] else 1.0,
        "u": u,
        "shift": np.zeros(u.shape[1]),
        "θ": floats(given["theta"]),
    }


def side_by_side(result: Any) -> Any:
    """Derivatives by several arguments, a row for each coordinate of a point."""
    return np.concatenate(list(map(np.asarray, result)), axis=-1).reshape(-1, sum(r.shape[-1] for r in result))


def start(given: Json) -> Arguments:
    return {"start": floats(given["start"])}


def control(given: Json) -> Arguments:
    return {"w0": floats(given["w"])}


def flat(result: Any) -> Json:
    return listed(np.ravel(result))


def by_name(result: Any) -> Json:
    return dict(zip(("alpha", "mu", "q", "l"), listed(result), strict=True))


def nested(name: str, arguments: Callable[[Json], Arguments], answer: Callable[[Any], Json]) -> dict[str, Function]:
    """The four nestings of forward and reverse mode, each a program of its own."""
    return {way: Function(f"{name}/{way}", cd.simplified, arguments, answer) for way in ("rr", "ff", "fr", "rf")}


def joined(result: Any) -> Json:
    return listed(np.concatenate(list(map(np.asarray, result))))


EXPANDED = {"distances": "expanded"}
"""Squares of distances between points of two clouds by a product of matrices."""

EVALS: dict[str, dict[str, Function]] = {
    "hello": {
        "square": Function("hello", cd.simplified, number),
        "double": Function("hello", cd.grad, number),
    },
    "lse": {
        "primal": Function("lse", cd.simplified, vector),
        "gradient": Function("lse", cd.grad, vector),
    },
    "llsq": {
        "primal": Function("llsq", cd.simplified, polynomial),
        "gradient": Function("llsq", cd.grad, polynomial),
    },
    "kmeans": {
        "cost": Function("kmeans", cd.simplified, clusters, options=EXPANDED),
        "dir": Function("kmeans_dir", cd.simplified, clusters, options=EXPANDED),
    },
    "gmm": {
        "objective": Function("gmm", cd.simplified, mixture),
        "jacobian": Function("gmm", cd.grad, mixture, by_name),
    },
    "det": {
        "primal": Function("det", cd.simplified, matrix),
        "gradient": Function("det", cd.grad, matrix, flat),
    },
    "ode": {
        "primal": Function("ode", cd.simplified, runge_kutta),
        "gradient": Function("ode", cd.pullback, last_of_runge_kutta),
    },
    "lstm": {
        "objective": Function("lstm", cd.simplified, network),
        "jacobian": Function("lstm", cd.grad, network, layer_by_layer),
    },
    "saddle": nested("saddle", start, joined),
    "particle": nested("particle", control, listed),
    "ht": {
        "objective": Function("ht", cd.simplified, hand, flat),
        "jacobian": Function("ht", cd.jacobian, hand, assembled=side_by_side),
    },
    "ba": {
        "objective": Function("ba", cd.simplified, bundles.arguments, bundles.errors),
        "jacobian": Function(
            "ba",
            cd.jacobian,
            bundles.arguments,
            bundles.sampled,
            assembled=bundles.sparse,
            options={"structured": True},
            memory=bundles.stored,
        ),
    },
}
