"""Settings of all tests: property tests take the same examples at every run, unless asked to explore.

`pytest --hypothesis-profile=explore` draws new examples, and ten times as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a `sampled` function the first row is quick, and the others are slow; of `sampled(every=3)` every third is."""
    seen: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            function = item.nodeid.partition("[")[0]
            if seen[function]:
                item.add_marker(pytest.mark.slow)
            if seen[function] % mark.kwargs.get("every", 1):
                item.add_marker(pytest.mark.long)
            seen[function] += 1


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Derivations that commands keep are not those of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
