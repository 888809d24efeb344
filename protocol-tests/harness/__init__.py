"""What the suites share: installing clients, starting brokers, reporting cases."""
