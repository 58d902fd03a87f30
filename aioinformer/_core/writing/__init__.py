"""Write requests, and the contents that a program writes: conditions, merge patches."""
