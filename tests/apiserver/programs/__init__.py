"""Programs that run in processes of their own, so that a test can kill or stop them."""
