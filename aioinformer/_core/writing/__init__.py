"""Write requests, and the contents that a program writes: conditions and merge patches."""
