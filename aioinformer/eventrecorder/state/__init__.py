"""Rules of Kubernetes Events: their bodies, and the counts of repeated ones."""
