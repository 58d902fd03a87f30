"""Leader election: a file for each module, all in virtual time."""
