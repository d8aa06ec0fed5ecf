"""`python -m tests.fuzz --minutes 10 --seed 1`: programs until the time is over, then what was found."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main())
