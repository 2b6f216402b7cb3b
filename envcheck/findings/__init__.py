"""What checks say: findings, what they are about, and their remedies."""
