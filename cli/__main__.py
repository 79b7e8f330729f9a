"""`python -m priorkit_cli` is the same as `priorkit`."""

from .main import main

main()
