"""`python -m latih.cli`."""

import sys

from latih.cli.main import main

sys.exit(main())
