"""Stand-ins for what a test machine does not have."""
