"""`python -m combdiff` is the command line."""

import sys

from combdiff.command.cli import main

sys.exit(main())
