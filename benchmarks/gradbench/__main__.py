"""GradBench's protocol: a message of JSON a line on standard input, its answer on standard output.

python -m benchmarks.gradbench [--library numpy|jax] [--record FILE]

FILE gets a line for each answer to `evaluate`: the seconds to derive the function, and those before the calls.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.gradbench.evals import EVALS
from benchmarks.gradbench.tool import LIBRARIES, Json, derived, prepared

Result = TypeVar("Result")


def timed(name: str, f: Callable[[], Result]) -> tuple[Result, dict[str, Json]]:
    """The result of a call, and its time as the protocol writes it."""
    start = time.perf_counter_ns()
    result = f()
    return result, {"name": name, "nanoseconds": time.perf_counter_ns() - start}


def define(message: Json, library: str) -> Json:
    """Derive all functions of a module."""
    functions = EVALS[message["module"]]
    timings = [timed(f"derive {name}", lambda f=f: derived(f))[1] for name, f in functions.items()]
    return {"success": True, "timings": timings}


def evaluate(message: Json, library: str) -> Json:
    """Prepare a function, and call it as often as the message wants; `hello` says nothing, and means once."""
    function, given = EVALS[message["module"]][message["function"]], message["input"]
    asked = given if isinstance(given, dict) else {}
    call, preparing = timed("prepare", lambda: prepared(function, library, given))
    timings, elapsed, result = [], 0, None
    while len(timings) < max(asked.get("min_runs", 1), 1) or elapsed < 1e9 * asked.get("min_seconds", 0):
        result, timing = timed("evaluate", call)
        timings.append(timing)
        elapsed += timing["nanoseconds"]
    return {"success": True, "output": function.answer(result), "timings": [preparing, *timings]}


ANSWERS: dict[str, Callable[[Json, str], Json]] = {
    "start": lambda message, library: {"tool": "combdiff", "config": {"library": library}},
    "define": define,
    "evaluate": evaluate,
}


def recorded(message: Json, answered: Json, derivations: dict[str, Json]) -> Json:
    """The seconds before the calls that an answer counts; those to derive are noted when a module is defined."""
    found = {t["name"]: t["nanoseconds"] / 1e9 for t in answered.get("timings", [])}
    derivations.update(found if message["kind"] == "define" else {})
    return {"derive": derivations.get(f"derive {message.get('function')}", 0.0), "prepare": found.get("prepare", 0.0)}


def answer(message: Json, library: str) -> Json:
    """The answer to a message. What goes wrong is part of the answer, and the tool goes on."""
    try:
        return ANSWERS.get(message["kind"], lambda *_: {})(message, library)
    except Exception:
        return {"success": False, "error": traceback.format_exc()}


def main() -> None:
    """Answer messages until there are none."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradbench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", choices=LIBRARIES, default="numpy", help="the library of the code (numpy)")
    parser.add_argument("--record", help="a file for the seconds before the calls")
    asked: Any = parser.parse_args()
    derivations: dict[str, Json] = {}
    for line in sys.stdin:
        message = json.loads(line)
        answered = answer(message, asked.library)
        print(json.dumps({"id": message["id"]} | answered), flush=True)
        record = recorded(message, answered, derivations)
        if asked.record and message["kind"] == "evaluate":
            with open(asked.record, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
