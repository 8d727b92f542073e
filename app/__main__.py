"""Runs the program: python -m app."""

from app.main import main

if __name__ == "__main__":
    raise SystemExit(main())
