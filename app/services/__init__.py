"""Slow work as Qt signals: the engine, running answers, scans; no widgets here."""
