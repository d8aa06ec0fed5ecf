"""Settings of all tests: property tests take the same examples at every run, unless asked to explore.

`pytest --hypothesis-profile=explore` draws new examples, and ten times as many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("steady")


STEPS = {3: 2, 6: 4, 24: 8}
"""Of a table of more than so many slow tests every so-many-th row is run with each change, and all by `-m long`."""

MOST_QUICK_ROWS = 20
"""Of a longer table of quick tests every fourth row is quick, two rows further every second one is slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of `sampled` functions the first row is quick, the others are slow; long tables are thinned, but `whole` ones."""
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    quick: dict[str, list[pytest.Item]] = defaultdict(list)
    seen: set[str] = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sampled") and function in seen:
            item.add_marker(pytest.mark.slow)
        seen.add(function)
        if not item.get_closest_marker("long") and not item.get_closest_marker("whole"):
            (tables if item.get_closest_marker("slow") else quick)[function].append(item)
    for rows in tables.values():
        for n, item in enumerate(rows):
            if n % max((step for most, step in STEPS.items() if len(rows) > most), default=1):
                item.add_marker(pytest.mark.long)
    for rows in quick.values():
        for n, item in enumerate(rows):
            if len(rows) > MOST_QUICK_ROWS and n % 4:
                item.add_marker(pytest.mark.slow if n % 8 == 2 else pytest.mark.long)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Derivations that commands keep are not those of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
