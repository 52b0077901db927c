"""What only those who work on Shoal need."""
