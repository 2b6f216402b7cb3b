"""The doctor's report as text, JSON, JUnit and Markdown: pure functions, rich for tables."""
