"""Settings of all tests: property tests take the same examples at every run, unless asked to explore.

`pytest --hypothesis-profile=explore` draws new examples, and ten times as many.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("steady")
