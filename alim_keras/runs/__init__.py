"""What the commands share: from settings to objects, and the run folder."""
