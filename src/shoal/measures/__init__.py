"""What masking cost and what is still at risk: losses, risks, attacks, bounds, utility."""
