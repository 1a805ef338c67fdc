"""The commands' own code: configuration, command line and run folder."""
