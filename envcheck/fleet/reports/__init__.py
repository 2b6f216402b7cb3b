"""A fleet's result as text, JSON, JUnit, OpenMetrics and pages: pure functions."""
