"""What a training step costs, beside a plain step of the same network."""
