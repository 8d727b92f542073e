"""The small windows that open beside the main one, never over an error."""
