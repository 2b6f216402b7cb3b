"""What container engines are allowed and configured to do: limits, CDI specifications."""
