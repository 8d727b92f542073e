"""Everything that paints: theme, Markdown, widgets, pages, dialogs and the window."""
