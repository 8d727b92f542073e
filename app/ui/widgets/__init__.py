"""The parts of the window, each usable and tested alone."""
