"""The desktop program: the only house that knows Qt."""
