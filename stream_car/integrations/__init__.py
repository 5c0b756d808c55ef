"""Stream-CAR inside the frameworks that programs of agents are written in: one module each, behind an extra."""
