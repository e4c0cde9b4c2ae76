"""`python -m overtone`, for where the script is not on the PATH."""

import sys

from overtone.cli import main

sys.exit(main())
