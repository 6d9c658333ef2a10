"""`python -m exact_counter` is `ledgerctl`."""

from ledgerctl.__main__ import main

if __name__ == "__main__":
    main()
