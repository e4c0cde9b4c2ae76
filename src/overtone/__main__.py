"""Run the command line by `python -m overtone`, for environments where the script `overtone` is not on the PATH."""

import sys

from overtone.cli import main

sys.exit(main())
