"""The alerts of `deploy/alerts.yml`, on metrics that were recorded while real faults happened."""
