"""python -m engine: the commands of `engine.cli`."""

import sys

from engine.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
