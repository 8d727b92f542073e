"""The pages that fill the middle of the window."""
